package check

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/internal/clustertest"
)

func TestAPI(t *testing.T) {
	test(t, Cluster(), "api-ready", []expected{
		{name: "ready", status: OK, wantText: []string{"Kubernetes v1.37.1"}},
		{name: "not ready", change: func(s *fixture) { s.f.Unready = "etcd failed" }, status: Fail, wantText: []string{"not ready: etcd failed", "readyz?verbose"}},
	})
	server := func(v string) func(*fixture) { return func(s *fixture) { s.S.Server.Version = v } }
	test(t, Cluster(), "version-server", []expected{
		{name: "as built for", status: OK, wantText: []string{"made for v1.37"}},
		{name: "with what vendors add", change: server("v1.36.3-gke.1200+abc"), status: OK},
		{name: "one later", change: server("v1.38.0"), status: OK},
		{name: "much later", change: server("v1.39.0"), status: Warn, wantText: []string{"get a later release of gangctl"}},
		{name: "too old for the scheduler", change: server("v1.30.4"), status: Warn, wantText: []string{"v1.34 or later", "--scheduler NAME"}},
		{name: "nonsense", change: server("newest"), status: Warn},
		{name: "a build without a release", change: server("v0.0.0-master+$Format:%H$"), status: OK, wantText: []string{"does not report its"}},
	})
	kubelet := func(v string) func(*fixture) {
		return func(s *fixture) { s.S.Nodes[0].Status.NodeInfo.KubeletVersion = v }
	}
	test(t, Cluster(), "version-kubelets", []expected{
		{name: "one behind", status: OK, wantText: []string{"kubelets of v1.36"}},
		{name: "mixed", change: kubelet("v1.35.1"), status: OK, wantText: []string{"v1.35, v1.36"}},
		{name: "newer", change: kubelet("v1.38.0"), status: Warn, wantText: []string{"newer than the API server (1.37.1): n1"}},
		{name: "too old", change: kubelet("v1.33.0"), status: Warn, wantText: []string{"more than 3 releases behind"}},
		{name: "no nodes", change: func(s *fixture) { s.S.Nodes = nil }},
		{name: "a server without a release", change: server("v0.0.0-master+$Format:%H$")},
	})
}

func TestSchedulerVersion(t *testing.T) {
	test(t, Cluster(), "version-scheduler", []expected{
		{name: "the same", status: OK},
		{name: "another", change: func(s *fixture) { s.f.Version.Version = "v1.3.0" }, status: Warn, wantText: []string{"is v1.2.3, gangctl is v1.3.0", "gangctl upgrade"}},
		{name: "a build between releases", change: func(s *fixture) {
			s.f.Version.Version = "v1.2.3-4-gabc+dirty"
			s.deployment("gang-scheduler").Labels[install.LabelVersion] = "v1.2.3-4-gabc_dirty"
		}, status: OK},
		{name: "by its image", change: func(s *fixture) { delete(s.deployment("gang-scheduler").Labels, install.LabelVersion) }, status: OK},
		{name: "unknown", change: func(s *fixture) {
			d := s.deployment("gang-scheduler")
			delete(d.Labels, install.LabelVersion)
			d.Spec.Template.Spec.Containers[0].Image = "x/gangctl@sha256:0"
		}, status: Warn, wantText: []string{"does not report its"}},
		{name: "not installed", change: func(s *fixture) { s.remove("gang-scheduler") }},
	})
}

func TestDefinitions(t *testing.T) {
	helm := map[string]string{"meta.helm.sh/release-name": "sp", "meta.helm.sh/release-namespace": "kube-system"}
	test(t, Cluster(), "crd-podgroups", []expected{
		{name: "ours", status: OK, wantText: []string{"put there by gangctl"}},
		{name: "another's", change: func(s *fixture) { s.f.Definitions[0].Labels, s.f.Definitions[0].Annotations = nil, helm }, status: OK, wantText: []string{"put there by Helm release kube-system/sp: gangctl uses it and leaves it alone"}},
		{name: "not there", change: func(s *fixture) {
			s.f.Definitions, s.S.Server.Resources = nil, []string{}
		}, status: Fail, wantText: []string{"is not there", "gangctl install scheduler"}},
		{name: "not served", change: func(s *fixture) { s.S.Server.Resources = []string{} }, status: Fail, wantText: []string{"exists and is not served"}},
		{name: "another version", change: func(s *fixture) { s.S.Server.Resources = []string{"podgroups.scheduling.x-k8s.io/v1beta1"} }, status: Fail, wantText: []string{"served as v1beta1, gangctl speaks v1alpha1"}},
	})
	test(t, Cluster(), "crd-jobs", []expected{
		{name: "there", status: OK},
		{name: "not there", change: func(s *fixture) {
			s.f.Definitions, s.S.Server.Resources = nil, []string{}
		}, status: Fail, wantText: []string{"gangctl install operator"}},
		{name: "only TFJobs", status: OK, wantText: []string{"tfjobs.kubeflow.org/v1", "not there: pytorchjobs, mpijobs; gangctl install operator --kinds tfjobs,pytorchjobs,mpijobs brings"}},
		{name: "MPIJobs of either operator", change: func(s *fixture) { s.serves("mpijobs.kubeflow.org", "v2beta1", nil, nil) }, status: OK, wantText: []string{"mpijobs.kubeflow.org/v2beta1", "not there: pytorchjobs;"}},
		{name: "other kinds only", change: func(s *fixture) {
			s.f.Definitions, s.S.Server.Resources = nil, []string{}
			s.serves("pytorchjobs.kubeflow.org", "v1", nil, nil)
		}, status: Warn, wantText: []string{"pytorchjobs.kubeflow.org/v1", "tfjobs.kubeflow.org is not there"}},
	})
	test(t, Before(), "crd-podgroups", []expected{
		{name: "not there", change: func(s *fixture) {
			s.f.Definitions, s.S.Server.Resources = nil, []string{}
		}, status: OK, wantText: []string{"install brings it"}},
		{name: "another version", change: func(s *fixture) { s.S.Server.Resources = []string{"podgroups.scheduling.x-k8s.io/v1beta1"} }, status: Fail},
	})
	for _, list := range [][]Check{Cluster(), Before()} {
		test(t, list, "crd-foreign", []expected{
			{name: "none"},
			{name: "each has a name", change: func(s *fixture) {
				s.serves("podgroups.scheduling.volcano.sh", "v1beta1", nil, map[string]string{"meta.helm.sh/release-name": "volcano", "meta.helm.sh/release-namespace": "volcano-system"})
				s.serves("podgroups.scheduling.incubator.k8s.io", "v1alpha1", nil, nil)
				s.f.Definitions[len(s.f.Definitions)-1].ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kube-apiserver"}, {Manager: "kubectl-create"}}
				s.serves("podgroups.scheduling.sigs.k8s.io", "v1alpha1", map[string]string{"kustomize.toolkit.fluxcd.io/name": "koord", "kustomize.toolkit.fluxcd.io/namespace": "flux"}, nil)
				s.serves("podgroups.scheduling.run.ai", "v2alpha2", map[string]string{install.LabelPartOf: "kai"}, nil)
			}, status: OK, wantText: []string{
				"the format of Volcano, put there by Helm release volcano-system/volcano", "the format of kube-batch, put there by kubectl-create",
				"the format of Koordinator, or scheduler-plugins of old, put there by Flux (flux/koord)", "the format of KAI, put there by kai"}},
			{name: "not served", change: func(s *fixture) { s.defines("podgroups.scheduling.volcano.sh", nil, nil) }, status: Warn, wantText: []string{"it is not served", "put there by another client"}},
		})
	}
}

func TestDevices(t *testing.T) {
	test(t, Cluster(), "devices", []expected{
		{name: "healthy", status: OK, wantText: []string{"16 nvidia.com/gpu on 2 nodes"}},
		{name: "unhealthy ones", change: func(s *fixture) { s.S.Nodes[1].Status.Allocatable["nvidia.com/gpu"] = clustertest.List("x", "6")["x"] }, status: Warn, wantText: []string{"nvidia.com/gpu that are not healthy: n2 (2)", "14 nvidia.com/gpu"}},
		{name: "hardware without a plugin", change: func(s *fixture) {
			s.Node("n3", 0).Labels["feature.node.kubernetes.io/pci-10de.present"] = "true"
		}, status: Fail, wantText: []string{"1 node with devices of NVIDIA offer none: n3", "spec.nodeName=n3"}},
		{name: "hardware without a plugin, as a cloud labels it", change: func(s *fixture) {
			s.Node("n3", 0).Labels["kubernetes.azure.com/accelerator"] = "nvidia"
		}, status: Fail, wantText: []string{"1 node with devices of NVIDIA offer none: n3"}},
		{name: "hardware that a DRA driver offers", change: func(s *fixture) {
			s.S.Nodes = nil
			s.Nodes(2, 0)
			for _, n := range s.S.Nodes {
				n.Labels["nvidia.com/gpu.present"] = "true"
				s.slice("gpu.nvidia.com", n.Name)
			}
		}, status: OK, wantText: []string{"devices of the DRA driver gpu.nvidia.com on 2 nodes"}},
		{name: "hardware that a DRA driver offers on nodes that it selects", change: func(s *fixture) {
			s.Node("n3", 0).Labels["nvidia.com/gpu.present"] = "true"
			s.slice("gpu.nvidia.com", "")
		}, status: OK},
		{name: "hardware that a DRA driver offers elsewhere", change: func(s *fixture) {
			s.Node("n3", 0).Labels["nvidia.com/gpu.present"] = "true"
			s.slice("gpu.nvidia.com", "n1")
			s.slice("gpu.example.com", "n3")
			s.slice("compute-domain.nvidia.com", "n3")
		}, status: Fail, wantText: []string{"1 node with devices of NVIDIA offer none: n3"}},
		{name: "hardware that a DRA driver may offer", change: func(s *fixture) {
			s.Node("n3", 0).Labels["nvidia.com/gpu.present"] = "true"
			s.f.Unlisted[ResourceSlices], s.f.Denied[ResourceSlices] = "refused", true
		}, status: Warn, wantText: []string{"whether a DRA driver does could not be checked", "n3", "resourceslices"}},
		{name: "slices that cannot be listed where all is offered", change: func(s *fixture) { s.f.Unlisted[ResourceSlices] = "slow" }, status: OK},
		{name: "a label with the value no", change: func(s *fixture) { s.Node("n3", 0).Labels["nvidia.com/gpu.present"] = "false" }, status: OK},
		{name: "a plugin that is not ready", change: func(s *fixture) {
			s.Put(&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "gpu", Name: "nvidia-device-plugin-daemonset"}, Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 4, NumberReady: 3}})
		}, status: Warn, wantText: []string{"DaemonSet gpu/nvidia-device-plugin-daemonset: 3/4 ready"}},
		{name: "no devices at all", change: func(s *fixture) {
			s.S.Nodes = nil
			s.Nodes(1, 0)
		}, status: OK, wantText: []string{"no node offers GPUs"}},
		{name: "no nodes", change: func(s *fixture) { s.S.Nodes = nil }, status: Warn},
	})
}

// slice has a DRA driver offer devices on a node, or on nodes that it selects if that is empty.
func (s *fixture) slice(driver, node string) {
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: driver + "-" + node}, Spec: resourcev1.ResourceSliceSpec{Driver: driver}}
	if node != "" {
		slice.Spec.NodeName = &node
	}
	s.Put(slice)
}

func TestClocks(t *testing.T) {
	server := func(ahead time.Duration) func(*fixture) {
		return func(s *fixture) { s.f.ServerTime = clustertest.Now.Add(ahead) }
	}
	test(t, Cluster(), "clock-caller", []expected{
		{name: "the same", status: OK},
		{name: "the server rounds down", change: server(-5500 * time.Millisecond), status: OK},
		{name: "ten seconds behind", change: server(10 * time.Second), status: Warn, wantText: []string{"your clock is 10s behind the API server's"}},
		{name: "ten seconds ahead", change: server(-11 * time.Second), status: Warn, wantText: []string{"your clock is 10s ahead of the API server's"}},
		{name: "far behind", change: server(5 * time.Minute), status: Fail, wantText: []string{"look dead"}},
		{name: "a slow answer is no skew", change: func(s *fixture) {
			s.f.AnsweredAt = s.f.QueriedAt.Add(20 * time.Second)
			s.f.ServerTime = s.f.QueriedAt.Add(15 * time.Second)
		}, status: OK},
		{name: "it sends no time", change: func(s *fixture) { s.f.ServerTime = time.Time{} }, status: Warn},
	})
	lease := func(ago time.Duration) *coordinationv1.Lease {
		at := metav1.NewMicroTime(clustertest.Now.Add(-ago))
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-node-lease", Name: "n1"}, Spec: coordinationv1.LeaseSpec{RenewTime: &at}}
	}
	test(t, Cluster(), "clock-nodes", []expected{
		{name: "no clock is ahead", status: OK, wantText: []string{"1 lease checked"}},
		{name: "a node that is late is not ahead", change: func(s *fixture) { s.f.NodeLeases = append(s.f.NodeLeases, lease(time.Hour)) }, status: OK, wantText: []string{"2 leases"}},
		{name: "a node is", change: func(s *fixture) { s.f.NodeLeases = append(s.f.NodeLeases, lease(-90*time.Second)) }, status: Warn, wantText: []string{"node n1 is 89s ahead"}},
		{name: "a component is", change: func(s *fixture) {
			who := "host-7_0123"
			s.Lease("kube-scheduler", -time.Minute).Spec.HolderIdentity = &who
		}, status: Warn, wantText: []string{"holder host-7 of lease gangctl-system/kube-scheduler"}},
		{name: "all are, if it is the caller who is behind", change: func(s *fixture) {
			s.f.ServerTime = clustertest.Now.Add(time.Minute)
			s.Lease("kube-scheduler", -time.Minute)
		}, status: OK},
	})
}
