// Helm, as far as tests of charts need it: its engine, and the verbs by which a release comes and goes.
//
//	helm-chart template FOLDER RELEASE NAMESPACE [VALUES]
//	helm-chart install FOLDER RELEASE NAMESPACE [VALUES]
//	helm-chart upgrade FOLDER RELEASE NAMESPACE [VALUES]
//	helm-chart uninstall RELEASE NAMESPACE
//
// VALUES is a file in YAML. `template` writes the manifests to the standard output in the order of their files, as
// `helm template --include-crds` does. The others do what the verbs of Helm do with its defaults, in the cluster that KUBECONFIG
// names; `upgrade` keeps the values of the release, as with `--reuse-values`.
package main

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/cli"
	"helm.sh/helm/v3/pkg/engine"
)

const usage = "usage: helm-chart template|install|upgrade FOLDER RELEASE NAMESPACE [VALUES], or helm-chart uninstall RELEASE NAMESPACE"

// How long a hook may take, as with Helm itself.
const timeout = 5 * time.Minute

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 3 && args[0] == "uninstall" {
		return uninstall(args[1], args[2])
	}
	if len(args) < 4 || len(args) > 5 {
		return fmt.Errorf(usage)
	}
	values := chartutil.Values{}
	if len(args) == 5 {
		var err error
		if values, err = chartutil.ReadValuesFile(args[4]); err != nil {
			return err
		}
	}
	folder, release, namespace := args[1], args[2], args[3]
	switch args[0] {
	case "template":
		return template(folder, release, namespace, values)
	case "install":
		return install(folder, release, namespace, values)
	case "upgrade":
		return upgrade(folder, release, namespace, values)
	}
	return fmt.Errorf(usage)
}

func template(folder, name, namespace string, given chartutil.Values) error {
	chart, err := loader.Load(folder)
	if err != nil {
		return err
	}
	release := chartutil.ReleaseOptions{Name: name, Namespace: namespace, Revision: 1, IsInstall: true}
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

// Helm in a namespace of the cluster. Releases are remembered in Secrets, as by default.
func in(namespace string) (*action.Configuration, error) {
	settings := cli.New()
	settings.SetNamespace(namespace)
	configuration := new(action.Configuration)
	log := func(format string, values ...interface{}) { fmt.Fprintf(os.Stderr, format+"\n", values...) }
	err := configuration.Init(settings.RESTClientGetter(), namespace, "secret", log)
	return configuration, err
}

func install(folder, name, namespace string, values chartutil.Values) error {
	chart, err := loader.Load(folder)
	if err != nil {
		return err
	}
	configuration, err := in(namespace)
	if err != nil {
		return err
	}
	install := action.NewInstall(configuration)
	install.ReleaseName, install.Namespace, install.Timeout = name, namespace, timeout
	_, err = install.Run(chart, values)
	return err
}

func upgrade(folder, name, namespace string, values chartutil.Values) error {
	chart, err := loader.Load(folder)
	if err != nil {
		return err
	}
	configuration, err := in(namespace)
	if err != nil {
		return err
	}
	upgrade := action.NewUpgrade(configuration)
	upgrade.Namespace, upgrade.Timeout, upgrade.ReuseValues = namespace, timeout, true
	_, err = upgrade.Run(name, chart, values)
	return err
}

func uninstall(name, namespace string) error {
	configuration, err := in(namespace)
	if err != nil {
		return err
	}
	uninstall := action.NewUninstall(configuration)
	uninstall.Timeout = timeout
	_, err = uninstall.Run(name)
	return err
}
