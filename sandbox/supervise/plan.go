package supervise

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gangctl/gangctl/sandbox/addon"
	"github.com/gangctl/gangctl/sandbox/component"
	"github.com/gangctl/gangctl/sandbox/credential"
	"github.com/gangctl/gangctl/sandbox/datadir"
	"github.com/gangctl/gangctl/sandbox/setting"
)

// controllers are those of kube-controller-manager that a sandbox has a use for;
// there are no clouds or networks to control, and volumes only where they are requested.
const controllers = "serviceaccount-token-controller,serviceaccount-controller,namespace-controller,garbage-collector-controller," +
	"job-controller,deployment-controller,replicaset-controller,statefulset-controller,resourcequota-controller,disruption-controller," +
	"pod-garbage-collector-controller,ttl-after-finished-controller,node-lifecycle-controller,taint-eviction-controller," +
	"root-ca-certificate-publisher-controller,clusterrole-aggregation-controller"

// Node heartbeats. The grace period must be a few heartbeats long; a lease is
// renewed after a quarter of its duration.
const (
	leaseSeconds     = 20
	nodeGracePeriod  = "20s"
	nodeMonitorEvery = "1s"
)

// spec is how to start a component.
type spec struct {
	name string
	args []string
	env  []string
}

// plan is the command lines of a sandbox.
type plan struct {
	dir      datadir.Dir
	settings setting.Settings
	ports    map[string]int
}

func (p plan) kubeconfig(user string) string { return credential.ComponentKubeconfig(p.dir, user) }

func (p plan) port(name string) string { return strconv.Itoa(p.ports[name]) }

func (p plan) etcd() spec {
	return spec{name: component.Etcd, args: []string{"--storage=" + p.dir.Path("etcd")}, env: memory("512MiB")}
}

func (p plan) apiserver() spec {
	cert, key := credential.Serving(p.dir)
	clientCert, clientKey := credential.KubeletClient(p.dir)
	signing := credential.ServiceAccountKey(p.dir)
	// Short requests are not to wait for long ones: with more threads than the machine has CPUs, the kernel shares these among them, where Go would
	// let a long one run on, and requests help to collect garbage, which is less often with twice as much of it.
	s := spec{name: component.APIServer, env: []string{"GOMEMLIMIT=2GiB", "GOGC=200", "GOMAXPROCS=8"}, args: []string{
		"--etcd-servers=" + component.EtcdSocket,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + p.port(portAPIServer),
		"--endpoint-reconciler-type=none", // a Service must not point to a loopback address
		"--tls-cert-file=" + cert,
		"--tls-private-key-file=" + key,
		"--token-auth-file=" + p.dir.Path("pki", "tokens.csv"),
		"--client-ca-file=" + credential.CA(p.dir), // publishes the configuration that other servers check clients by
		// No proxy is trusted, but servers that look for the setting want one.
		"--requestheader-client-ca-file=" + credential.CA(p.dir),
		"--requestheader-allowed-names=no-such-proxy",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + signing,
		"--service-account-signing-key-file=" + signing,
		"--service-cluster-ip-range=10.96.0.0/16",
		"--kubelet-certificate-authority=" + credential.CA(p.dir),
		"--kubelet-client-certificate=" + clientCert,
		"--kubelet-client-key=" + clientKey,
		"--kubelet-preferred-address-types=InternalIP",
		"--allow-privileged=true",
		"--profiling=false",
	}}
	if p.settings.NativeGangs {
		// With the gate of topology PodGroups have the field for it.
		gates, apis := "GenericWorkload=true,TopologyAwareWorkloadScheduling=true", "scheduling.k8s.io/v1beta1=true"
		if p.settings.CompositeGroups {
			gates, apis = gates+",CompositePodGroup=true", apis+",scheduling.k8s.io/v1alpha3=true"
		}
		s.args = append(s.args, "--feature-gates="+gates, "--runtime-config="+apis)
	}
	if program := p.settings.APIServer; program != "" {
		s.args = append([]string{program}, s.args...)
	}
	return s
}

func (p plan) controllerManager() spec {
	names, further := controllers, []string(nil)
	if p.settings.NativeGangs {
		// Admission has groups wait for it when they are deleted.
		names += ",podgroup-protection-controller"
		further = append(further, "--feature-gates=GenericWorkload=true")
	}
	if p.settings.Volumes {
		// Admission has claims and volumes wait for the last two when they are deleted.
		names += ",persistentvolume-binder-controller,ephemeral-volume-controller,persistentvolumeclaim-protection-controller,persistentvolume-protection-controller"
		further = append(further, "--enable-hostpath-provisioner=true")
	}
	return spec{name: component.ControllerManager, env: memory("192MiB"), args: append([]string{
		"--kubeconfig=" + p.kubeconfig(credential.ControllerManager),
		"--controllers=" + names,
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + credential.ServiceAccountKey(p.dir),
		"--root-ca-file=" + credential.CA(p.dir),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=200", "--kube-api-burst=400",
		"--node-monitor-period=" + nodeMonitorEvery,
		"--node-monitor-grace-period=" + nodeGracePeriod,
	}, further...)}
}

// patient is how the gang scheduler holds its lease, by which gangctl sees in a cluster that it works. An API server that is killed
// and started again, or a machine that has no time, must not end it.
const patient = "--leader-elect=true --leader-elect-lease-duration=60s --leader-elect-renew-deadline=40s --leader-elect-retry-period=5s"

// scheduler is false if pods are to stay pending.
func (p plan) scheduler() (spec, bool) {
	name, user, elect := component.GangScheduler, credential.GangScheduler, patient
	switch p.settings.Scheduler {
	case setting.None:
		return spec{}, false
	case setting.Gang:
	case setting.Default:
		name, user, elect = component.DefaultScheduler, credential.DefaultScheduler, "--leader-elect=false"
	}
	cert, key := credential.Serving(p.dir)
	s := spec{name: name, env: memory("192MiB"), args: []string{
		"--kubeconfig=" + p.kubeconfig(user),
		"--authentication-kubeconfig=" + p.kubeconfig(user),
		"--authorization-kubeconfig=" + p.kubeconfig(user),
		"--bind-address=127.0.0.1",
		"--secure-port=" + p.port(portScheduler),
		"--tls-cert-file=" + cert,
		"--tls-private-key-file=" + key,
		"--kube-api-qps=500", "--kube-api-burst=1000",
	}}
	s.args = append(s.args, strings.Fields(elect)...)
	if p.settings.Serve != "" {
		s.args = append(s.args, "--serve="+p.settings.Serve)
	}
	return s, true
}

func (p plan) operator() (spec, bool) {
	cert, key := credential.Serving(p.dir)
	s := spec{name: component.Operator, env: memory("128MiB"), args: []string{
		"--kubeconfig=" + p.kubeconfig(credential.Operator),
		"--probe-port=" + p.port(portOperatorProbe),
		"--webhook-port=" + p.port(portWebhook),
		"--tls-cert-file=" + cert,
		"--tls-private-key-file=" + key,
	}}
	if name := p.settings.OperatorGangScheduler; name != "" {
		s.args = append(s.args, "--gang-scheduler-name="+name)
	}
	return s, p.settings.Operator
}

// place is where a controller of another project runs.
func (p plan) place(c addon.Controller) addon.Place {
	return addon.Place{
		Home: p.dir.Path("addons", c.Name), Kubeconfig: p.kubeconfig(c.Name),
		WebhookPort: p.ports[webhookPort(c)], ProbePort: p.ports[probePort(c)],
	}
}

func (p plan) addon(c addon.Controller) spec {
	return spec{name: c.Name, env: memory("192MiB"), args: c.Args(p.settings.Controllers, p.place(c))}
}

func (p plan) nodes() spec {
	cert, key := credential.Serving(p.dir)
	s := spec{name: component.Nodes, env: memory("128MiB"), args: []string{
		"--kubeconfig=" + p.kubeconfig(credential.Nodes),
		"--port=" + p.port(portKubelet),
		"--tls-cert-file=" + cert,
		"--tls-private-key-file=" + key,
		"--client-ca-file=" + credential.CA(p.dir),
		"--run-for=" + p.settings.RunFor.String(),
		"--fail-rate=" + strconv.FormatFloat(p.settings.FailRate, 'g', -1, 64),
		fmt.Sprintf("--lease-seconds=%d", leaseSeconds),
	}}
	if p.settings.RunImage != "" {
		s.args = append(s.args, "--run-image="+p.settings.RunImage, "--pod-dir="+p.dir.Path("pods"))
	}
	return s
}

// memory makes the Go runtime collect garbage harder close to a size. It is no
// hard limit: a large cluster gets what it needs, but half of the CPU then goes
// into that. So it is far above what a cluster of tests and tutorials needs.
func memory(limit string) []string {
	return []string{"GOMEMLIMIT=" + limit, "GOGC=75"}
}
