// Runs two controllers of Kubernetes, the garbage collector and the namespace controller, without the rest of the
// controller manager, which takes five minutes more to compile.
//
//	kube-controllers KUBECONFIG
//
// Rates and periods are those that the controller manager has by default. It runs until it is ended.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
)

const (
	requestsPerSecond = 20
	requestBurst      = 30
	resync            = 12 * time.Hour

	collectorWorkers = 20
	collectorSync    = 30 * time.Second

	namespaceWorkers = 10
	namespaceResync  = 5 * time.Minute
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: kube-controllers KUBECONFIG")
	}
	config, err := clientcmd.BuildConfigFromFlags("", args[0])
	if err != nil {
		return err
	}
	config.QPS, config.Burst = requestsPerSecond, requestBurst

	client, err := kubernetes.NewForConfig(rest.AddUserAgent(config, "kube-controllers"))
	if err != nil {
		return err
	}
	objects := informers.NewSharedInformerFactory(client, resync)
	if err := startNamespaceController(ctx, config, objects); err != nil {
		return err
	}
	if err := startGarbageCollector(ctx, config, client, objects); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// Empties namespaces that are being deleted.
func startNamespaceController(ctx context.Context, config *rest.Config, objects informers.SharedInformerFactory) error {
	// It deletes every object by itself: the usual rate would make it slow.
	fast := rest.CopyConfig(config)
	fast.QPS, fast.Burst = 20*requestsPerSecond, 100*requestBurst
	client, err := kubernetes.NewForConfig(fast)
	if err != nil {
		return err
	}
	records, err := metadata.NewForConfig(fast)
	if err != nil {
		return err
	}
	controller := namespace.NewNamespaceController(
		ctx, client, records, client.Discovery().ServerPreferredNamespacedResources,
		objects.Core().V1().Namespaces(), namespaceResync, v1.FinalizerKubernetes,
	)
	go controller.Run(ctx, namespaceWorkers)
	return nil
}

// Deletes what has lost all its owners.
func startGarbageCollector(
	ctx context.Context, config *rest.Config, client kubernetes.Interface, objects informers.SharedInformerFactory,
) error {
	twofold := rest.CopyConfig(config)
	twofold.QPS *= 2
	records, err := metadata.NewForConfig(twofold)
	if err != nil {
		return err
	}
	discovery := memory.NewMemCacheClient(client.Discovery())
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(discovery)
	go wait.Until(mapper.Reset, 30*time.Second, ctx.Done())

	known := metadatainformer.NewSharedInformerFactory(records, resync)
	started := make(chan struct{})
	collector, err := garbagecollector.NewGarbageCollector(
		ctx, client, records, mapper, garbagecollector.DefaultIgnoredResources(),
		informerfactory.NewInformerFactory(objects, known), started,
	)
	if err != nil {
		return err
	}
	go collector.Run(ctx, collectorWorkers, collectorSync)
	go collector.Sync(ctx, client.Discovery(), collectorSync)
	objects.Start(ctx.Done())
	known.Start(ctx.Done())
	close(started)
	return nil
}
