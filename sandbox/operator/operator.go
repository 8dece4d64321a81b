// Package operator runs the controllers of the Kubeflow Training Operator for
// TFJobs, PyTorchJobs and MPIJobs, the real ones, in a process of the sandbox.
package operator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	operatorconfig "github.com/kubeflow/training-operator/pkg/config"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	"github.com/kubeflow/training-operator/pkg/controller.v1/mpi"
	"github.com/kubeflow/training-operator/pkg/controller.v1/pytorch"
	"github.com/kubeflow/training-operator/pkg/controller.v1/tensorflow"
	webhookpytorch "github.com/kubeflow/training-operator/pkg/webhooks/pytorch"
	webhooktensorflow "github.com/kubeflow/training-operator/pkg/webhooks/tensorflow"
	"github.com/sirupsen/logrus"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	schedulingv1alpha1 "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	volcanov1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	volcano "volcano.sh/apis/pkg/client/clientset/versioned"

	"github.com/gangctl/gangctl/sandbox/setting"
)

// Kinds are the resources that it handles.
func Kinds() []string { return []string{"tfjobs", "pytorchjobs", "mpijobs"} }

// WebhookPaths are where jobs are validated, by resource. MPIJobs are not.
func WebhookPaths() map[string]string {
	return map[string]string{
		"tfjobs":      "/validate-kubeflow-org-v1-tfjob",
		"pytorchjobs": "/validate-kubeflow-org-v1-pytorchjob",
	}
}

// syncTimeout is how long the caches may take to fill.
const syncTimeout = time.Minute

// Run reconciles jobs until ctx ends. It answers /readyz once its caches have
// synced and its webhook serves.
func Run(ctx context.Context, args []string) error {
	flags := pflag.NewFlagSet("operator", pflag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig of the operator")
	gangScheduler := flags.String("gang-scheduler-name", "", "create PodGroups for this scheduler")
	probePort := flags.Int("probe-port", 0, "port of /readyz")
	webhookPort := flags.Int("webhook-port", 0, "port of the validating webhook")
	cert := flags.String("tls-cert-file", "", "certificate of the webhook")
	key := flags.String("tls-private-key-file", "", "key of the webhook")
	if err := flags.Parse(args); err != nil {
		return err
	}
	logrus.SetOutput(os.Stderr)
	logrus.SetLevel(logrus.WarnLevel)
	ctrl.SetLogger(klog.Background())

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS = -1 // a sandbox has no other client to be fair to
	config.UserAgent = "training-operator"
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), kubeflowv1.AddToScheme(scheme), schedulingv1alpha1.AddToScheme(scheme), volcanov1beta1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("register API types: %w", err)
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                 scheme,
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: net.JoinHostPort("127.0.0.1", strconv.Itoa(*probePort)),
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: "127.0.0.1", Port: *webhookPort,
			CertDir: filepath.Dir(*cert), CertName: filepath.Base(*cert), KeyName: filepath.Base(*key),
		}),
	})
	if err != nil {
		return fmt.Errorf("create manager: %w", err)
	}
	if err := setup(mgr, *gangScheduler); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run manager: %w", err)
	}
	return nil
}

func setup(mgr ctrl.Manager, gangScheduler string) error {
	gang := common.GenNonGangSchedulerSetupFunc()
	switch gangScheduler {
	case "":
	case setting.Volcano:
		client, err := volcano.NewForConfig(mgr.GetConfig())
		if err != nil {
			return fmt.Errorf("create client of Volcano: %w", err)
		}
		gang = common.GenVolcanoSetupFunc(client)
	default:
		gang = common.GenSchedulerPluginsSetupFunc(mgr.GetClient(), gangScheduler)
	}
	// What the operator's own program sets from its flags.
	operatorconfig.Config.PyTorchInitContainerImage = operatorconfig.PyTorchInitContainerImageDefault
	operatorconfig.Config.PyTorchInitContainerTemplateFile = operatorconfig.PyTorchInitContainerTemplateFileDefault
	operatorconfig.Config.PyTorchInitContainerMaxTries = operatorconfig.PyTorchInitContainerMaxTriesDefault
	operatorconfig.Config.MPIKubectlDeliveryImage = operatorconfig.MPIKubectlDeliveryImageDefault
	if err := errors.Join(
		tensorflow.NewReconciler(mgr, gang).SetupWithManager(mgr, 1),
		pytorch.NewReconciler(mgr, gang).SetupWithManager(mgr, 1),
		mpi.NewReconciler(mgr, gang).SetupWithManager(mgr, 1),
	); err != nil {
		return fmt.Errorf("set up controllers: %w", err)
	}
	if err := errors.Join(webhooktensorflow.SetupWebhook(mgr), webhookpytorch.SetupWebhook(mgr)); err != nil {
		return fmt.Errorf("set up webhooks: %w", err)
	}
	return mgr.AddReadyzCheck("readyz", readyz(mgr))
}

// readyz is true once the webhook serves and every cache has been filled.
func readyz(mgr ctrl.Manager) healthz.Checker {
	return func(r *http.Request) error {
		if err := mgr.GetWebhookServer().StartedChecker()(r); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(r.Context(), syncTimeout)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("caches have not synced")
		}
		return nil
	}
}
