module github.com/hashicorp/go-discover

go 1.23.8
