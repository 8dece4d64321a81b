package supervise

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gangctl/gangctl/sandbox/addon"
	"github.com/gangctl/gangctl/sandbox/component"
	"github.com/gangctl/gangctl/sandbox/datadir"
	"github.com/gangctl/gangctl/sandbox/setting"
)

func testPlan() plan {
	return plan{dir: datadir.Dir("/d"), settings: setting.Defaults(), ports: map[string]int{
		portAPIServer: 1, portScheduler: 2, portKubelet: 3, portOperatorProbe: 4, portWebhook: 5,
	}}
}

// Nothing listens anywhere but on this machine.
func TestPlanIsLocal(t *testing.T) {
	p := testPlan()
	sched, _ := p.scheduler()
	for _, s := range []spec{p.apiserver(), sched} {
		if !slices.Contains(s.args, "--bind-address=127.0.0.1") {
			t.Errorf("%s binds to everything: %v", s.name, s.args)
		}
	}
	if !slices.Contains(p.controllerManager().args, "--secure-port=0") {
		t.Error("the controller manager serves")
	}
	if !slices.Contains(p.apiserver().args, "--authorization-mode=RBAC") || !strings.HasPrefix(component.EtcdSocket, "unix://") {
		t.Error("the API server or its storage is open to everybody")
	}
}

func TestPlanScheduler(t *testing.T) {
	for scheduler, want := range map[setting.Scheduler]string{
		setting.Gang: component.GangScheduler, setting.Default: component.DefaultScheduler, setting.None: "",
	} {
		p := testPlan()
		p.settings.Scheduler = scheduler
		got, ok := p.scheduler()
		if got.name != want || ok != (want != "") {
			t.Errorf("%s: got %q, %v", scheduler, got.name, ok)
		}
		if want != "" && !slices.Contains(got.args, "--kubeconfig=/d/pki/"+want+".kubeconfig") {
			t.Errorf("%s runs as somebody else: %v", want, got.args)
		}
	}
}

// A controller removes the finalizers of deleted PodGroups, where there are any.
func TestPlanNativeGangs(t *testing.T) {
	for _, native := range []bool{true, false} {
		p := testPlan()
		p.settings.NativeGangs = native
		args := strings.Join(p.controllerManager().args, " ")
		for _, part := range []string{",podgroup-protection-controller", "--feature-gates=GenericWorkload=true"} {
			if strings.Contains(args, part) != native {
				t.Errorf("native gangs %v: %s", native, args)
			}
		}
	}
}

// Composite PodGroups are of an alpha version, behind a gate.
func TestPlanCompositeGroups(t *testing.T) {
	p := testPlan()
	p.settings.NativeGangs = true
	for _, composite := range []bool{true, false} {
		p.settings.CompositeGroups = composite
		args := strings.Join(p.apiserver().args, " ")
		for _, part := range []string{"TopologyAwareWorkloadScheduling=true,CompositePodGroup=true", "scheduling.k8s.io/v1beta1=true,scheduling.k8s.io/v1alpha3=true"} {
			if strings.Contains(args, part) != composite {
				t.Errorf("composite groups %v: %s", composite, args)
			}
		}
	}
}

// An API server of another version is a program with the same flags.
func TestPlanAPIServer(t *testing.T) {
	p := testPlan()
	own := p.apiserver()
	p.settings.APIServer = "/kube-apiserver"
	if other := p.apiserver(); other.args[0] != "/kube-apiserver" || !slices.Equal(other.args[1:], own.args) || other.name != own.name {
		t.Errorf("got %v, %v", other.name, other.args)
	}
}

// Claims get volumes where they are asked for, and only there are there controllers for them.
func TestPlanVolumes(t *testing.T) {
	for _, volumes := range []bool{true, false} {
		p := testPlan()
		p.settings.Volumes = volumes
		args := strings.Join(p.controllerManager().args, " ")
		for _, part := range []string{",persistentvolume-binder-controller", ",persistentvolumeclaim-protection-controller", "--enable-hostpath-provisioner=true"} {
			if strings.Contains(args, part) != volumes {
				t.Errorf("volumes %v: %s", volumes, args)
			}
		}
		_, rights, err := p.manifests()
		if err != nil {
			t.Fatal(err)
		}
		if class := slices.ContainsFunc(rights, func(m []byte) bool { return strings.Contains(string(m), "kind: StorageClass") }); class != volumes {
			t.Errorf("volumes %v: there is a class: %v", volumes, class)
		}
	}
}

func TestPlanOperator(t *testing.T) {
	p := testPlan()
	if s, ok := p.operator(); !ok || slices.ContainsFunc(s.args, func(a string) bool { return strings.HasPrefix(a, "--gang") }) {
		t.Errorf("got %v, %v", s, ok)
	}
	p.settings.OperatorGangScheduler = "gang-scheduler"
	if s, _ := p.operator(); !slices.Contains(s.args, "--gang-scheduler-name=gang-scheduler") {
		t.Errorf("got %v", s.args)
	}
	p.settings.Operator = false
	if _, ok := p.operator(); ok {
		t.Error("runs though it is not wanted")
	}
}

// Pods are simulated except those that the settings select to run.
func TestPlanNodes(t *testing.T) {
	p := testPlan()
	if s := p.nodes(); slices.ContainsFunc(s.args, func(a string) bool { return strings.HasPrefix(a, "--run-image") }) {
		t.Errorf("got %v", s.args)
	}
	p.settings.RunImage = "gangctl=/bin/gangctl"
	if s := p.nodes(); !slices.Contains(s.args, "--run-image=gangctl=/bin/gangctl") || !slices.Contains(s.args, "--pod-dir=/d/pods") {
		t.Errorf("got %v", s.args)
	}
}

// A controller of another project runs as itself, on ports and in a folder of its own.
func TestPlanAddon(t *testing.T) {
	p := testPlan()
	p.settings.With, p.settings.Controllers = "jobset", "/kinds"
	c := addon.Chosen(p.settings.With)[0]
	p.ports[probePort(c)], p.ports[webhookPort(c)] = 6, 7
	if place := p.place(c); place.Probe() != "127.0.0.1:6" || place.Webhook() != "127.0.0.1:7" {
		t.Errorf("got %+v", place)
	}
	s := p.addon(c)
	if s.name != "jobset" || !slices.Equal(s.args[:2], []string{"/d/addons/jobset", "/kinds/jobset"}) || !slices.Contains(s.args, "--kubeconfig=/d/pki/jobset.kubeconfig") {
		t.Errorf("got %+v", s)
	}
}

func TestChoosePorts(t *testing.T) {
	jobset := addon.Chosen("jobset")
	first, err := choosePorts(nil, 0, jobset...)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for name, port := range first {
		if port == 0 || seen[port] {
			t.Errorf("%s: port %d", name, port)
		}
		seen[port] = true
	}
	if first[probePort(jobset[0])] == 0 || first[webhookPort(jobset[0])] == 0 {
		t.Errorf("a controller has no ports: %v", first)
	}
	again, err := choosePorts(first, 0)
	if err != nil || again[portAPIServer] != first[portAPIServer] {
		t.Errorf("free ports are not kept: %v, then %v (%v)", first, again, err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().(*net.TCPAddr).Port
	if moved, err := choosePorts(map[string]int{portKubelet: taken}, 0); err != nil || moved[portKubelet] == taken {
		t.Errorf("a port that is taken: %v, %v", moved, err)
	}
	if _, err := choosePorts(nil, taken); err == nil || !strings.Contains(err.Error(), "cannot be used") {
		t.Errorf("a port that was asked for and is taken: %v", err)
	}
}

func TestLastLogLines(t *testing.T) {
	tests := map[string]struct{ log, want string }{
		"klog":   {"I1121 fine\nF1121 12:00:00 server.go:1] cannot bind\nmore\n", "F1121 12:00:00 server.go:1] cannot bind\nmore"},
		"etcd":   {"{\"level\":\"warn\",\"msg\":\"w\"}\n{\"level\":\"panic\",\"msg\":\"failed to create WAL\",\"error\":\"no space left on device\"}\ngoroutine 1:\n", "failed to create WAL: no space left on device"},
		"go":     {"x\npanic: oh no\n\ngoroutine 1 [running]:\nmain.main()\n", "panic: oh no"},
		"cobra":  {"Error: unknown flag: --x\n", "Error: unknown flag: --x"},
		"plain":  {"1\n2\n3\n4\n5\n", "3\n4\n5"},
		"long":   {strings.Repeat("x", 1000) + "\n", strings.Repeat("x", longest) + " …"},
		"silent": {"", ""},
	}
	for name, tt := range tests {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(tt.log), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := LastLines(path, 3); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
	if got := LastLines("/does/not/exist", 3); got != "" {
		t.Errorf("got %q", got)
	}
}
