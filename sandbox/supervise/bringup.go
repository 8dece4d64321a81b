package supervise

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/gangctl/gangctl/install"
	release "github.com/gangctl/gangctl/install/operator"

	"github.com/gangctl/gangctl/sandbox/component"
	"github.com/gangctl/gangctl/sandbox/crd"
	"github.com/gangctl/gangctl/sandbox/credential"
	"github.com/gangctl/gangctl/sandbox/manifest"
	"github.com/gangctl/gangctl/sandbox/operator"
	"github.com/gangctl/gangctl/sandbox/setting"
)

// apiReadyz is the path that, with the administrator's token, reports why the API server is not
// ready.
const apiReadyz = "/readyz?verbose"

// startTimeout is how long a sandbox may take to become ready. It is long: slow
// machines are slow, and a component that dies ends the wait at once.
const startTimeout = 3 * time.Minute

// bringUp starts everything in the order of its needs and returns when the
// cluster can be used.
func (s *supervisor) bringUp(ctx context.Context) error {
	if err := s.bringUpAPIServer(ctx); err != nil {
		return err
	}
	config := s.credentials.AdminConfig(s.plan.ports[portAPIServer])
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	if err := s.board.step("starting the other components"); err != nil {
		return err
	}
	applier := &manifest.Applier{Client: dynamicClient}
	crds, rights, err := s.plan.manifests()
	if err != nil {
		return err
	}
	for _, a := range s.addons {
		crds, rights = append(crds, a.installation.Definitions...), append(rights, a.installation.Rights...)
	}
	if err := applier.Apply(ctx, append(slices.Clone(crds), rights...)...); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.bringUpNodes(ctx, client) })
	group.Go(func() error {
		if err := applier.WaitEstablished(ctx, crds...); err != nil {
			return err
		}
		// Not earlier: a garbage collector that starts without a kind learns of it
		// half a minute later, and until then deletes nothing that such an object owns.
		if err := s.start(s.plan.controllerManager()); err != nil {
			return err
		}
		inner, ctx := errgroup.WithContext(ctx)
		inner.Go(func() error { return s.bringUpScheduler(ctx, client) })
		inner.Go(func() error { return s.bringUpOperator(ctx, applier) })
		inner.Go(func() error { return s.bringUpAddons(ctx, client, applier) })
		return inner.Wait()
	})
	group.Go(func() error { return until(ctx, "the default service account", defaultAccount(client)) })
	return group.Wait()
}

// bringUpAPIServer starts etcd and the API server, and returns when that is ready.
func (s *supervisor) bringUpAPIServer(ctx context.Context) error {
	if err := s.board.step("starting etcd and the API server"); err != nil {
		return err
	}
	if err := s.start(s.plan.etcd()); err != nil {
		return err
	}
	if err := s.start(s.plan.apiserver()); err != nil {
		return err
	}
	return s.ready(ctx, component.APIServer, credential.Server(s.plan.ports[portAPIServer])+apiReadyz)
}

// manifests are what a sandbox has before its components start: definitions, and then rights and the class of volumes. What an installation of the scheduler
// brings is left to it.
func (p plan) manifests() (crds, rights [][]byte, err error) {
	rights = [][]byte{manifest.NodesRBAC(), manifest.OperatorRBAC()}
	for _, kind := range operator.Kinds() {
		definition, err := release.Definition(kind)
		if err != nil {
			return nil, nil, err
		}
		crds = append(crds, definition)
	}
	if p.settings.Volumes {
		rights = append(rights, manifest.StorageClass())
	}
	if p.settings.RunImage == "" || p.settings.Scheduler == setting.Gang {
		crds, rights = append(crds, install.PodGroupCRD()), append(rights, install.SchedulerRBAC())
	}
	if p.settings.OperatorGangScheduler == setting.Volcano {
		crds = append(crds, crd.VolcanoPodGroups())
	}
	return crds, rights, nil
}

func (s *supervisor) bringUpScheduler(ctx context.Context, client kubernetes.Interface) error {
	sched, ok := s.plan.scheduler()
	if !ok {
		return nil
	}
	elected := s.plan.settings.Scheduler == setting.Gang
	leases := client.CoordinationV1().Leases(install.DefaultNamespace)
	if elected {
		// Who held it in an earlier life of the sandbox is gone.
		err := leases.Delete(ctx, install.SchedulerInstance, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete lease %s/%s: %w", install.DefaultNamespace, install.SchedulerInstance, err)
		}
	}
	if err := s.start(sched); err != nil {
		return err
	}
	if err := s.ready(ctx, sched.name, local("https", s.plan.ports[portScheduler], "/readyz")); err != nil || !elected {
		return err
	}
	return until(ctx, "the scheduler to lead", func(ctx context.Context) error {
		_, err := leases.Get(ctx, install.SchedulerInstance, metav1.GetOptions{})
		return err
	})
}

func (s *supervisor) bringUpOperator(ctx context.Context, applier *manifest.Applier) error {
	op, ok := s.plan.operator()
	if !ok {
		return applier.RemoveWebhook(ctx)
	}
	if err := s.start(op); err != nil {
		return err
	}
	if err := s.ready(ctx, op.name, local("http", s.plan.ports[portOperatorProbe], "/readyz")); err != nil {
		return err
	}
	ca, err := os.ReadFile(credential.CA(s.dir))
	if err != nil {
		return fmt.Errorf("read certificate authority: %w", err)
	}
	urls := map[string]string{}
	for resource, path := range operator.WebhookPaths() {
		urls[resource] = local("https", s.plan.ports[portWebhook], path)
	}
	return applier.Apply(ctx, manifest.Webhook(urls, ca))
}

func local(scheme string, port int, path string) string {
	return scheme + "://127.0.0.1:" + strconv.Itoa(port) + path
}
