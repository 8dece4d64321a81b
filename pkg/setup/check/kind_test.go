package check

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// controller adds a Deployment whose account holds the rights of a controller of a kind of job.
func (s *fixture) controller(namespace, name, image, group, resource string) *appsv1.Deployment {
	d := s.Deployment(namespace, name, image)
	d.Spec.Template.Spec.ServiceAccountName = name
	b := &s.f.Policy
	b.ClusterRoles = append(b.ClusterRoles, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{rule(group, resource+"/status", "update", "patch")}})
	b.ClusterRoleBindings = append(b.ClusterRoleBindings, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:  rbacv1.RoleRef{Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: name}}})
	s.S.ClusterRoles, s.S.ClusterRoleBindings = b.ClusterRoles, b.ClusterRoleBindings
	return d
}

// Of each kind of job that is served it is reported whether it would be a gang, or why not.
func TestKindsAreGangs(t *testing.T) {
	serve := func(names ...string) func(*fixture) {
		return func(s *fixture) {
			for _, name := range names {
				s.serves(name, map[string]string{"jobsets.jobset.x-k8s.io": "v1alpha2", "trainjobs.trainer.kubeflow.org": "v1alpha1", "jobs.batch.volcano.sh": "v1alpha1"}[name], nil, nil)
			}
		}
	}
	const lws, rays = "leaderworkersets.leaderworkerset.x-k8s.io", "rayjobs.ray.io"
	test(t, Cluster(), "kinds-gang", []expected{
		{name: "TFJobs alone", status: OK, wantText: []string{
			"TFJob: a gang of scheduler gang-scheduler, in dialect scheduler-plugins; pods are made by Deployment kubeflow/training-operator",
			"Job: a gang of scheduler gang-scheduler, in dialect scheduler-plugins; pods are made by Kubernetes itself",
			"not served: PyTorchJob, MPIJob, TrainJob, JobSet, LeaderWorkerSet, RayJob, RayCluster, Volcano Job, XGBoostJob, PaddleJob, JAXJob",
		}},
		{name: "Jobs of Volcano", status: Warn, change: serve("jobs.batch.volcano.sh"), wantText: []string{"Volcano Job: nothing is seen that makes pods of it: vc-controller-manager does not run here"}},
		{name: "JobSets", status: OK, change: func(s *fixture) {
			serve("jobsets.jobset.x-k8s.io")(s)
			s.controller("jobset-system", "jobset-controller-manager", "registry.k8s.io/jobset/jobset:v0.12.0", "jobset.x-k8s.io", "jobsets")
		}, wantText: []string{"JobSet: a gang of scheduler gang-scheduler, in dialect scheduler-plugins; pods are made by Deployment jobset-system/jobset-controller-manager"}},
		{name: "TrainJobs without their controller", status: Warn, change: serve("trainjobs.trainer.kubeflow.org"),
			wantText: []string{"TrainJob: nothing is seen that makes pods of it: trainer-controller-manager does not run here", "kubectl apply --server-side -k 'https://github.com/kubeflow/trainer.git/manifests/overlays/manager?ref=v2.3.0'"}},
		{name: "TFJobs without their operator", status: Warn, change: func(s *fixture) { s.remove("training-operator") },
			wantText: []string{"TFJob: nothing is seen that makes pods of it: training-operator does not run here", "gangctl install operator"}},
		{name: "PyTorchJobs, and the operator handles TFJobs only", status: Warn, change: func(s *fixture) {
			s.serves("pytorchjobs.kubeflow.org", "v1", nil, nil)
			s.operatorArgs("--enable-scheme=tfjob")
			s.webhook("tfjobs")
		}, wantText: []string{"PyTorchJob: nothing is seen that makes pods of it: Deployment kubeflow/training-operator handles other kinds only (--enable-scheme)",
			"add --enable-scheme=pytorchjob to its arguments: kubectl -n kubeflow edit deployment training-operator",
			"TFJob: a gang of scheduler gang-scheduler, in dialect scheduler-plugins; pods are made by Deployment kubeflow/training-operator"}},
		{name: "PyTorchJobs, which the operator handles, too", status: OK, change: func(s *fixture) {
			s.serves("pytorchjobs.kubeflow.org", "v1", nil, nil)
			s.operatorArgs("--enable-scheme=tfjob", "--enable-scheme=pytorchjob")
		}, wantText: []string{"PyTorchJob: a gang of scheduler gang-scheduler, in dialect scheduler-plugins; pods are made by Deployment kubeflow/training-operator"}},
		{name: "MPIJobs, and the operator, which has no webhook for them, handles TFJobs only", status: Warn, change: func(s *fixture) {
			s.serves("mpijobs.kubeflow.org", "v1", nil, nil)
			s.operatorArgs("--enable-scheme=tfjob")
			s.webhook("tfjobs")
		}, wantText: []string{"MPIJob: nothing is seen that makes pods of it"}},
		{name: "an operator that is no Deployment, by its webhook", status: OK, change: func(s *fixture) {
			s.serves("pytorchjobs.kubeflow.org", "v1", nil, nil)
			s.serves("mpijobs.kubeflow.org", "v1", nil, nil)
			s.remove("training-operator")
			s.webhook("tfjobs", "pytorchjobs")
		}, wantText: []string{"PyTorchJob: a gang of scheduler gang-scheduler, in dialect scheduler-plugins; pods are made by an operator that is no Deployment",
			"MPIJob: a gang of scheduler gang-scheduler, in dialect scheduler-plugins; pods are made by an operator that is no Deployment"}},
		{name: "an operator that is no Deployment, whose webhook looks at other kinds", status: Warn, change: func(s *fixture) {
			s.serves("pytorchjobs.kubeflow.org", "v1", nil, nil)
			s.remove("training-operator")
			s.webhook("tfjobs")
		}, wantText: []string{"PyTorchJob: nothing is seen that makes pods of it"}},
		{name: "LeaderWorkerSets", status: OK, change: func(s *fixture) {
			s.serves(lws, "v1", nil, nil)
			s.controller("lws-system", "lws-controller-manager", "registry.k8s.io/lws/lws:v0.9.0", "leaderworkerset.x-k8s.io", "leaderworkersets")
		}, wantText: []string{"LeaderWorkerSet: a gang of scheduler gang-scheduler, which reads the labels of its controller"}},
		{name: "LeaderWorkerSets without our scheduler", status: Warn, change: func(s *fixture) {
			s.serves(lws, "v1", nil, nil)
			s.controller("lws-system", "lws-controller-manager", "registry.k8s.io/lws/lws:v0.9.0", "leaderworkerset.x-k8s.io", "leaderworkersets")
			s.remove("gang-scheduler")
			s.S.Leases = nil
		}, wantText: []string{"LeaderWorkerSet: no gang: only scheduler gang-scheduler reads the labels of its controller", "gangctl install scheduler"}},
		{name: "a gang of the operator", status: OK, change: func(s *fixture) {
			s.serves(rays, "v1", nil, nil)
			d := s.controller("ray-system", "kuberay-operator", "quay.io/kuberay/operator:v1.4.2", "ray.io", "rayjobs")
			d.Spec.Template.Spec.Containers[0].Args = []string{"--batch-scheduler=volcano"}
			s.Deployment("volcano-system", "volcano-scheduler", "docker.io/volcanosh/vc-scheduler:v1.12.0")
		}, wantText: []string{"RayJob: a gang of scheduler volcano, whose group its controller makes"}},
		{name: "its scheduler is not there", status: Warn, change: func(s *fixture) {
			s.serves(rays, "v1", nil, nil)
			d := s.controller("ray-system", "kuberay-operator", "quay.io/kuberay/operator:v1.4.2", "ray.io", "rayjobs")
			d.Spec.Template.Spec.Containers[0].Args = []string{"--batch-scheduler=volcano"}
		}, wantText: []string{"RayJob: no gang: its controller makes groups for scheduler volcano, which gives no sign of life"}},
	})
}
