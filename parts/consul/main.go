// Runs a Consul agent, without the other commands of Consul, which are not used and take minutes to compile.
//
//	consul agent [OPTION...]
//	consul version
package main

import (
	"os"

	"github.com/hashicorp/consul/command/agent"
	"github.com/hashicorp/consul/command/cli"
	"github.com/hashicorp/consul/command/version"
	mcli "github.com/mitchellh/cli"
)

func main() {
	ui := &cli.BasicUI{BasicUi: mcli.BasicUi{Writer: os.Stdout, ErrorWriter: os.Stderr}}
	program := &mcli.CLI{
		Name: "consul",
		Args: os.Args[1:],
		Commands: map[string]mcli.CommandFactory{
			"agent":   func() (mcli.Command, error) { return agent.New(ui), nil },
			"version": func() (mcli.Command, error) { return version.New(ui), nil },
		},
		HelpWriter: os.Stdout,
	}
	code, err := program.Run()
	if err != nil {
		ui.Error(err.Error())
		code = 1
	}
	os.Exit(code)
}
