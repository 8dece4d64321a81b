// Package kubelet simulates the kubelets of a sandbox's nodes: KWOK moves nodes
// and pods through the states of the embedded stages, and a server answers for
// the logs of containers that do not exist.
package kubelet

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	kwoklog "sigs.k8s.io/kwok/pkg/log"

	"github.com/gangctl/gangctl/sandbox/kubelet/podlog"
	"github.com/gangctl/gangctl/sandbox/kubelet/process"
)

// options are the flags of the component.
type options struct {
	kubeconfig      string
	port            int
	cert, key, ca   string
	behaviour       Behaviour
	podNetwork      string
	leaseSeconds    uint
	playParallelism uint
	// runImage is NAME=PROGRAM: images whose containers run as a program.
	runImage string
	podDir   string
}

// Run plays the kubelet of every node until ctx ends.
func Run(ctx context.Context, args []string) error {
	o := options{}
	flags := pflag.NewFlagSet("nodes", pflag.ContinueOnError)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the kubelets")
	flags.IntVar(&o.port, "port", 0, "port of the kubelets' API")
	flags.StringVar(&o.cert, "tls-cert-file", "", "certificate of the kubelets' API")
	flags.StringVar(&o.key, "tls-private-key-file", "", "its key")
	flags.StringVar(&o.ca, "client-ca-file", "", "who signs the API server's client certificate")
	flags.DurationVar(&o.behaviour.RunFor, "run-for", 0, "how long pods run; 0 for ever")
	flags.Float64Var(&o.behaviour.FailRate, "fail-rate", 0, "share of pods that fail")
	flags.StringVar(&o.podNetwork, "pod-network", "10.244.0.1/16", "network of pod addresses")
	flags.UintVar(&o.leaseSeconds, "lease-seconds", 40, "duration of node leases")
	flags.UintVar(&o.playParallelism, "parallelism", 8, "pods that change state at the same time")
	flags.StringVar(&o.runImage, "run-image", "", "NAME=PROGRAM: run containers of that image as processes of a program")
	flags.StringVar(&o.podDir, "pod-dir", "", "directory for the files of such pods")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS = -1
	config.UserAgent = "gangctl-sandbox-kubelet"
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	if err := o.startNodes(ctx, config, client); err != nil {
		return err
	}
	server := podlog.Server{Client: client, Clock: clock.RealClock{}, EndsAtAnnotation: EndsAtAnnotation, EndedAtAnnotation: EndedAtAnnotation}
	runner := o.runner(config, client)
	serving, stop := context.WithCancel(ctx)
	defer stop()
	var processes sync.WaitGroup
	defer processes.Wait()
	defer stop()
	if runner != nil {
		server.LogFile = runner.LogFile
		processes.Go(func() {
			if err := runner.Run(serving); err != nil {
				fmt.Fprintln(os.Stderr, "error:", err)
			}
		})
	}
	return server.Serve(serving, podlog.Address{Port: o.port, Cert: o.cert, Key: o.key, ClientCA: o.ca})
}

// runner runs the pods that are not simulated; nil if all are.
func (o options) runner(config *rest.Config, client kubernetes.Interface) *process.Runner {
	image, program, found := strings.Cut(o.runImage, "=")
	if !found {
		return nil
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	return &process.Runner{Client: client, Image: image, Program: program, Dir: o.podDir, Server: config.Host, CA: o.ca, Log: log}
}

// startNodes starts KWOK's controllers on every node that has not failed.
func (o options) startNodes(ctx context.Context, config *rest.Config, client kubernetes.Interface) error {
	image, _, _ := strings.Cut(o.runImage, "=")
	machines, err := stages(image)
	if err != nil {
		return err
	}
	dynamicClient, err := dynamic.NewForConfig(rest.CopyConfig(config))
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	var controller *controllers.Controller
	t := templates{behaviour: o.behaviour, clock: clock.RealClock{}, alive: func(node string) bool {
		_, ok := controller.GetNodeCache().Get(node)
		return ok
	}}
	ctx = kwoklog.NewContext(ctx, kwoklog.NewLogger(os.Stderr, kwoklog.LevelWarn))
	controller, err = controllers.NewController(controllers.Config{
		Clock:                        clock.RealClock{},
		TypedClient:                  seenOnly{client, clock.RealClock{}},
		DynamicClient:                dynamicClient,
		RESTClient:                   client.CoreV1().RESTClient(),
		ManageNodesWithLabelSelector: "!" + FailedLabel,
		CIDR:                         o.podNetwork,
		NodeIP:                       address,
		NodePort:                     o.port,
		LocalStages:                  machines,
		PodPlayStageParallelism:      o.playParallelism,
		NodePlayStageParallelism:     2,
		NodeLeaseDurationSeconds:     o.leaseSeconds,
		NodeLeaseParallelism:         2,
		PodsOnNodeSyncParallelism:    2,
		FuncMap:                      t.functions(),
		// The holderIdentity of the leases: the next run of the same sandbox
		// must be able to take over the nodes at once.
		ID: "gangctl-sandbox",
	})
	if err != nil {
		return fmt.Errorf("create node controller: %w", err)
	}
	if err := o.adopt(ctx, client); err != nil {
		return err
	}
	if err := controller.Start(ctx); err != nil {
		return fmt.Errorf("start node controller: %w", err)
	}
	return nil
}

// adopt writes the current kubelet endpoints of nodes to the API server: the
// port may have changed since they were created.
func (o options) adopt(ctx context.Context, client kubernetes.Interface) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		if n.Status.DaemonEndpoints.KubeletEndpoint.Port == int32(o.port) {
			continue
		}
		n.Status.DaemonEndpoints = corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(o.port)}}
		if _, err := client.CoreV1().Nodes().UpdateStatus(ctx, n, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("update node %s: %w", n.Name, err)
		}
	}
	return nil
}
