package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/internal/sandboxtest"
	"github.com/gangctl/gangctl/sandbox/credential"
	"github.com/gangctl/gangctl/sandbox/datadir"
	sandboxmanifest "github.com/gangctl/gangctl/sandbox/manifest"
	"github.com/gangctl/gangctl/sandbox/setting"
)

// olderCluster is an API server of another version, with the storage and the
// credentials of a sandbox, and nothing else: no controllers and no kubelets.
type olderCluster struct {
	*cluster
	t      *testing.T
	port   int
	server *child
}

// child is a process that ends with the test.
type child struct {
	cmd  *exec.Cmd
	done chan struct{}
	log  string
}

// spawn starts a process in a directory, with its output in a log there.
func spawn(t *testing.T, dir, name, program string, args ...string) *child {
	t.Helper()
	c := &child{cmd: exec.Command(program, args...), done: make(chan struct{}), log: filepath.Join(dir, name+".log")}
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	must(t, err)
	defer log.Close()
	c.cmd.Dir = dir
	c.cmd.Stdout, c.cmd.Stderr = log, log
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	_, err = c.cmd.StdinPipe() // a component of a sandbox ends with it
	must(t, err)
	must(t, c.cmd.Start())
	go func() { _ = c.cmd.Wait(); close(c.done) }()
	t.Cleanup(func() {
		c.stop()
		if t.Failed() {
			text, _ := os.ReadFile(c.log)
			lines := strings.Split(strings.TrimSpace(string(text)), "\n")
			t.Logf("%s:\n%s", name, strings.Join(lines[max(0, len(lines)-30):], "\n"))
		}
	})
	return c
}

func (c *child) stop() {
	_ = c.cmd.Process.Kill()
	<-c.done
}

// newOlder starts a program as the API server, and puts on the cluster what
// install puts there for the scheduler.
func newOlder(t *testing.T, program string, flags ...string) *olderCluster {
	t.Helper()
	dir := t.TempDir()
	data := datadir.Dir(dir)
	_, err := data.Claim(datadir.NewMarker("older", "test", setting.Defaults()))
	must(t, err)
	credentials, err := credential.Ensure(data)
	must(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	c := &olderCluster{t: t, port: listener.Addr().(*net.TCPAddr).Port}
	must(t, listener.Close())
	kubeconfig := filepath.Join(dir, "kubeconfig")
	must(t, credentials.WriteKubeconfigs(kubeconfig, c.port))
	spawn(t, dir, "etcd", programs.sandbox, "component", "etcd", "--data-dir", dir, "--storage", filepath.Join(dir, "etcd"))

	config := credentials.AdminConfig(c.port)
	c.cluster = &cluster{Cluster: &sandboxtest.Cluster{Binary: programs.sandbox, DataDir: dir, Kubeconfig: kubeconfig, Config: config}}
	c.client, err = kubernetes.NewForConfig(config)
	must(t, err)
	c.dynamic, err = dynamic.NewForConfig(config)
	must(t, err)
	c.serve(program, flags...)

	applier := &sandboxmanifest.Applier{Client: c.dynamic}
	must(t, applier.Apply(t.Context(), install.PodGroupCRD(), install.SchedulerRBAC()))
	must(t, applier.WaitEstablished(t.Context(), install.PodGroupCRD()))
	// What a controller would do.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	_, err = c.client.CoreV1().ServiceAccounts(space).Create(t.Context(), account, metav1.CreateOptions{})
	must(t, err)
	c.addNode("old-1")
	c.addNode("old-2")
	return c
}

// serve starts a program as the API server, in the place of the one that runs.
func (c *olderCluster) serve(program string, flags ...string) {
	c.t.Helper()
	if c.server != nil {
		c.server.stop()
	}
	dir := datadir.Dir(c.DataDir)
	cert, key := credential.Serving(dir)
	signing := credential.ServiceAccountKey(dir)
	c.server = spawn(c.t, c.DataDir, filepath.Base(program), program, append([]string{
		"--etcd-servers=unix://etcd.sock", // in the directory in which both run
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.port),
		"--endpoint-reconciler-type=none",
		"--tls-cert-file=" + cert,
		"--tls-private-key-file=" + key,
		"--token-auth-file=" + dir.Path("pki", "tokens.csv"),
		"--client-ca-file=" + credential.CA(dir),
		"--requestheader-client-ca-file=" + credential.CA(dir),
		"--requestheader-allowed-names=no-such-proxy",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + signing,
		"--service-account-signing-key-file=" + signing,
		"--service-cluster-ip-range=10.96.0.0/16",
	}, flags...)...)
	for deadline := time.Now().Add(2 * stepTimeout); ; time.Sleep(100 * time.Millisecond) {
		body, err := c.client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(c.t.Context())
		if err == nil && string(body) == "ok" {
			return
		}
		select {
		case <-c.server.done:
			c.t.Fatalf("%s ended", program)
		default:
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%s is not ready: %v", program, err)
		}
	}
}

// addNode adds a node of four CPUs that is ready, as controllers see it.
func (c *olderCluster) addNode(name string) {
	c.t.Helper()
	nodes := c.client.CoreV1().Nodes()
	has := corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("110")}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	node.Status = corev1.NodeStatus{Allocatable: has, Capacity: has, Conditions: []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	}}}
	_, err := nodes.Create(c.t.Context(), node, metav1.CreateOptions{})
	must(c.t, err)
	eventually(c.t, name+" is untainted", func(ctx context.Context) bool { // admission taints new nodes
		have, err := nodes.Get(ctx, name, metav1.GetOptions{})
		must(c.t, err)
		have.Spec.Taints = nil
		_, err = nodes.Update(ctx, have, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) {
			must(c.t, err)
		}
		return err == nil
	})
}
