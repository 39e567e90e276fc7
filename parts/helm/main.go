// Renders a Helm chart with Helm's own engine, without the rest of Helm.
//
//	helm-chart FOLDER RELEASE NAMESPACE [VALUES]
//
// VALUES is a file in YAML. The manifests are written to the standard output in the order of their files, as
// `helm template --include-crds` writes them.
package main

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

func main() {
	if err := render(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func render(args []string) error {
	if len(args) < 3 || len(args) > 4 {
		return fmt.Errorf("usage: helm-chart FOLDER RELEASE NAMESPACE [VALUES]")
	}
	chart, err := loader.Load(args[0])
	if err != nil {
		return err
	}
	given := chartutil.Values{}
	if len(args) == 4 {
		if given, err = chartutil.ReadValuesFile(args[3]); err != nil {
			return err
		}
	}
	release := chartutil.ReleaseOptions{Name: args[1], Namespace: args[2], Revision: 1, IsInstall: true}
	values, err := chartutil.ToRenderValues(chart, given, release, chartutil.DefaultCapabilities)
	if err != nil {
		return err
	}
	rendered, err := engine.Engine{Strict: true}.Render(chart, values)
	if err != nil {
		return err
	}
	for _, crd := range chart.CRDObjects() {
		fmt.Printf("---\n%s\n", crd.File.Data)
	}
	names := make([]string, 0, len(rendered))
	for name := range rendered {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		text := rendered[name]
		if path.Ext(name) == ".yaml" && strings.TrimSpace(text) != "" {
			fmt.Printf("---\n%s\n", text)
		}
	}
	return nil
}
