package stages_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/submit/provenance"
)

func quota(c *clustertest.Cluster, name string, hard, used corev1.ResourceList) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Spec: corev1.ResourceQuotaSpec{Hard: hard}, Status: corev1.ResourceQuotaStatus{Hard: hard, Used: used}}
	c.Put(q)
	return q
}

// onlyGPUs leaves nothing but GPUs of what a pod requests.
func onlyGPUs(p *corev1.PodSpec) {
	gpus := clustertest.List("nvidia.com/gpu", "8")
	p.Containers[0].Resources = corev1.ResourceRequirements{Requests: gpus, Limits: gpus}
}

// exceeds is the refusal of a pod by a quota, queried just now.
func exceeds(pod, quota, requested, used, limited string) []snapshot.Probe {
	return []snapshot.Probe{{Kind: "Pod", Namespace: "team", Name: pod, Code: 403,
		Message: fmt.Sprintf("pods %q is forbidden: exceeded quota: %s, requested: %s, used: %s, limited: %s", pod, quota, requested, used, limited)}}
}

func TestQuota(t *testing.T) {
	list := clustertest.List
	asJob := func(g *clustertest.Gang) { g.Kind, g.NoGroup = "Job", true }
	check(t, []testCase{
		{name: "a quota is named also where the job is suspended", code: answer.JobSuspended, exit: 4, also: []answer.Code{answer.NSQuotaTooSmall}, build: func(c *clustertest.Cluster) {
			hard := clustertest.List("requests.nvidia.com/gpu", "8")
			c.Put(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gpus"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}, Status: corev1.ResourceQuotaStatus{Hard: hard}})
			c.Nodes(2, 8).Add(gangOf(2, 8, none, job(set(true, "spec", "runPolicy", "suspend"))))
		}},
		{name: "a class is named also where no operator makes pods", code: answer.OperatorMissing, exit: 5, also: []answer.Code{answer.PriorityMissing}, build: func(c *clustertest.Cluster) {
			c.S.Deployments = c.S.Deployments[1:]
			c.Put(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}})
			c.Nodes(2, 8).Add(gangOf(2, 8, none, ungrouped, spec(func(p *corev1.PodSpec) { p.PriorityClassName = "gpld" }), job(set(map[string]any{}, "status"))))
		}},
		{name: "the whole gang counts, not one pod", code: answer.NSQuota, exit: 3, first: "16 of 24 GPUs used", wantText: []string{"TFJob other is charged 16", "requested 16, used 16, limit 24", "0/2 pods"}, fix: "to 32", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(clustertest.Gang{Name: "other", Workers: 2, GPUs: 8, Nodes: []string{"n1", "n2"}})
			quota(c, "gpus", list("requests.nvidia.com/gpu", "24"), list("requests.nvidia.com/gpu", "16"))
			c.Add(gangOf(2, 8, none))
		}},
		{name: "there is exactly enough", code: answer.Fits, exit: 3, never: []answer.Code{answer.NSQuota}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			quota(c, "gpus", list("requests.nvidia.com/gpu", "24"), list("requests.nvidia.com/gpu", "8"))
			c.Add(gangOf(2, 8, none, func(g *clustertest.Gang) { g.Age = 20 * time.Second }))
		}},
		{name: "half of the gang is there and is charged", code: answer.NSQuotaTooSmall, exit: 6, first: "12 GPUs in all, and the gang needs 16", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			quota(c, "gpus", list("requests.nvidia.com/gpu", "12"), list("requests.nvidia.com/gpu", "8"))
			c.Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Missing = 1 }))
		}},
		{name: "what the runtime of the pods adds is charged, too", code: answer.NSQuotaTooSmall, exit: 6, first: "quota cpus.*16 cpu in all, and the gang needs 18", wantText: []string{"cpu of each worker: 9 = 8 [+] 1 of kata, its RuntimeClass"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			quota(c, "cpus", list("requests.cpu", "16"), nil)
			c.Put(&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "kata"}, Overhead: &nodev1.Overhead{PodFixed: list("cpu", "1")}})
			c.Add(gangOf(2, 8, none, spec(func(p *corev1.PodSpec) { p.RuntimeClassName = ptr.To("kata") })))
		}},
		{name: "an elastic gang needs its minimum only", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			quota(c, "gpus", list("requests.nvidia.com/gpu", "16"), nil)
			c.Add(gangOf(4, 8, none, func(g *clustertest.Gang) { g.Min, g.Age = 2, 20*time.Second }))
		}},
		{name: "the submitter of a RayJob counts, too", code: answer.NSQuotaTooSmall, exit: 6, first: "allows 3 pod slots in all, and the gang needs 4", fix: "raise pods of quota q to 4", build: func(c *clustertest.Cluster) {
			quota(c, "q", clustertest.List("pods", "3"), clustertest.List("pods", "0"))
			c.Nodes(2, 8).Add(gangOf(2, 8, none, ungrouped, func(g *clustertest.Gang) { g.Kind = "RayJob" }))
		}},
		{name: "an elastic gang needs the minimum of each role, and of no other as many", code: answer.BelowQuorum, exit: 3, never: []answer.Code{answer.NSQuota, answer.NSQuotaTooSmall}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			c.Nodes(4, 8)
			quota(c, "gpus", list("requests.nvidia.com/gpu", "16"), list("requests.nvidia.com/gpu", "8"))
			c.Add(gangOf(3, 8, func(g *clustertest.Gang) {
				g.Volcano, g.Min, g.Missing = "q", 3, 2
				g.More = []clustertest.Role{{Name: "Evaluator", Replicas: 1, Missing: 1}}
				g.Group = set(map[string]any{"worker": int64(2), "evaluator": int64(1)}, "spec", "minTaskMember")
			}))
		}},
		{name: "number of pods", code: answer.NSQuotaTooSmall, exit: 6, first: "quota pods", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			quota(c, "pods", list("count/pods", "1"), nil)
			c.Add(gangOf(2, 8, none))
		}},
		{name: "limits", code: answer.NSQuotaTooSmall, exit: 6, wantText: []string{"limits.memory"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			quota(c, "mem", list("limits.memory", "100Gi"), nil)
			c.Add(gangOf(2, 8, none))
		}},
		{name: "two quotas: what can never be comes first", code: answer.NSQuotaTooSmall, exit: 6, first: "quota b", also: []answer.Code{answer.NSQuota}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			quota(c, "a", list("requests.nvidia.com/gpu", "16"), list("requests.nvidia.com/gpu", "8"))
			quota(c, "b", list("cpu", "10"), nil)
			c.Add(gangOf(2, 8, none))
		}},
		{name: "a quota for another priority", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			quota(c, "low", list("requests.nvidia.com/gpu", "8"), nil).Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
				{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{"low"}}}}
			c.Add(gangOf(2, 8, none, func(g *clustertest.Gang) { g.Age = 20 * time.Second }))
		}},
		{name: "only the launcher has the priority that a quota counts", code: answer.NSQuotaTooSmall, exit: 6, first: "1 pod", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			q := quota(c, "high", list("pods", "1"), nil)
			q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
				{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{"high"}}}}
			c.Add(gangOf(2, 8, func(g *clustertest.Gang) {
				g.Kind, g.More = "MPIJob", []clustertest.Role{{Name: "Launcher", Replicas: 2, Spec: func(p *corev1.PodSpec) { p.PriorityClassName = "high" }}}
			}, none))
		}},
		{name: "a Job", code: answer.NSQuota, exit: 3, first: "quota gpus", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			quota(c, "gpus", list("requests.nvidia.com/gpu", "16"), list("requests.nvidia.com/gpu", "16"))
			c.Add(gangOf(2, 8, none, asJob))
		}},
		{name: "quotas may not be listed, but the refusal has the numbers", code: answer.NSQuota, exit: 3, first: "quota gpus.*16 of 24", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(gangOf(2, 8, none))
			c.S.Denied = []snapshot.Denial{{Resource: "resourcequotas"}}
			refuse(c, `pods "gang-worker-1" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=16, limited: requests.nvidia.com/gpu=24`)
		}},
		{name: "the same, and the quota can never do", code: answer.NSQuotaTooSmall, exit: 6, first: "8 GPUs in all, and the gang needs 16", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(gangOf(2, 8, none))
			c.S.Denied = []snapshot.Denial{{Resource: "resourcequotas"}}
			refuse(c, `pods "gang-worker-1" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=8, limited: requests.nvidia.com/gpu=8`)
		}},
		{name: "an old refusal by a quota that has room now", code: answer.BelowQuorum, exit: 3, never: []answer.Code{answer.NSQuota}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(gangOf(2, 8, none))
			quota(c, "gpus", list("requests.nvidia.com/gpu", "64"), nil)
			refuse(c, `pods "gang-worker-1" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=8, limited: requests.nvidia.com/gpu=8`)
		}},
		{name: "the class that a pod gets by default is in the scope", code: answer.NSQuota, exit: 3, first: "8 of 8 GPUs used, 2 more members need 8", wantText: []string{"PriorityClass in standard, as those of gang are"}, build: func(c *clustertest.Cluster) {
			c.Put(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "standard"}, GlobalDefault: true})
			c.Nodes(4, 8)
			quota(c, "gpus", list("requests.nvidia.com/gpu", "8"), list("requests.nvidia.com/gpu", "8")).Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
				{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{"standard"}}}}
			c.Add(gangOf(2, 4, none))
		}},
		{name: "pods with GPUs alone are BestEffort", code: answer.NSQuota, exit: 3, first: "4 of 4 pod slots used", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			quota(c, "best", list("pods", "4"), list("pods", "4")).Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}
			c.Add(gangOf(2, 8, none, spec(onlyGPUs)))
		}},
		{name: "the limits of a pod as a whole are its requests", code: answer.NSQuotaTooSmall, exit: 6, first: "quota cpu.*100 cpu in all, and the gang needs 128", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			quota(c, "cpu", list("requests.cpu", "100"), nil)
			c.Add(gangOf(2, 8, none, spec(func(p *corev1.PodSpec) {
				onlyGPUs(p)
				p.Resources = &corev1.ResourceRequirements{Limits: list("cpu", "64")}
			})))
		}},
		{name: "they are not of the others", code: answer.Fits, exit: 3, never: []answer.Code{answer.NSQuotaTooSmall}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			quota(c, "others", list("pods", "1"), nil).Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeNotBestEffort}
			c.Add(gangOf(2, 8, none, spec(onlyGPUs), func(g *clustertest.Gang) { g.Age = 20 * time.Second }))
		}},
		{name: "the API server refuses now what the quota has room for as it is read", code: answer.NSQuota, exit: 3, first: "quota gpus.*60 of 64 GPUs used, 2 more members need 16", wantText: []string{"the pods were refused, queried just now"}, fix: "to 76", alone: true, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(gangOf(2, 8, none))
			quota(c, "gpus", list("requests.nvidia.com/gpu", "64"), nil)
			c.S.Probes = exceeds("gang-worker-0", "gpus", "requests.nvidia.com/gpu=8", "requests.nvidia.com/gpu=60", "requests.nvidia.com/gpu=64")
		}},
		{name: "it counts what a webhook adds to the pods of both roles", code: answer.NSQuota, exit: 3, first: "quota mem.*2Gi of 8Gi memory used, 3 more members need 7Gi", alone: true, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.More = []clustertest.Role{{Name: "PS", Replicas: 1}} }, none))
			quota(c, "mem", list("limits.memory", "8Gi"), nil).Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeTerminating}
			c.S.Probes = slices.Concat(exceeds("gang-worker-0", "mem", "limits.memory=3Gi", "limits.memory=2Gi", "limits.memory=8Gi"),
				exceeds("gang-ps-0", "mem", "limits.memory=1Gi", "limits.memory=2Gi", "limits.memory=8Gi"))
		}},
		{name: "what is read of the quota explains the refusal", code: answer.NSQuota, exit: 3, first: "16 of 24 GPUs used, 2 more members need 16", alone: true, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(gangOf(2, 8, none))
			quota(c, "gpus", list("requests.nvidia.com/gpu", "24"), list("requests.nvidia.com/gpu", "16"))
			c.S.Probes = exceeds("gang-worker-0", "gpus", "requests.nvidia.com/gpu=8", "requests.nvidia.com/gpu=17", "requests.nvidia.com/gpu=24")
		}},
		{name: "a parameter server that stays is not charged the workers' GPUs", code: answer.NSQuota, exit: 3, wantText: []string{"TFJob a is charged 8"}, not: []string{"that stay"}, build: func(c *clustertest.Cluster) {
			a := withServer("n1", "n2")
			a.Namespace = "team"
			c.Nodes(4, 8).Add(a)
			quota(c, "gpus", list("requests.nvidia.com/gpu", "8"), list("requests.nvidia.com/gpu", "8"))
			c.Add(gangOf(1, 8, none))
		}},
		{name: "a parameter server that stays keeps its part of the quota", code: answer.NSQuota, exit: 5, wantText: []string{"TFJob a is charged 80 for pods that stay when it ends"}, build: func(c *clustertest.Cluster) {
			a := withServer("n1", "n2")
			a.Namespace = "team"
			c.Nodes(4, 8).Add(a)
			quota(c, "cpus", list("requests.cpu", "100"), list("requests.cpu", "88"))
			c.Add(gangOf(1, 8, none, func(g *clustertest.Gang) { g.CPU = "32" }))
		}},
		{name: "pods that wait themselves and never start are charged", code: answer.NSQuota, exit: 4, first: "16 of 16 GPUs used, 1 more member needs 8", fix: "delete or suspend hog",
			wantText: []string{"TFJob hog is charged 16 for pods without a node", "why hog does not start: "}, build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8)
				quota(c, "gpus", list("requests.nvidia.com/gpu", "16"), list("requests.nvidia.com/gpu", "16"))
				c.Add(clustertest.Gang{Name: "hog", Workers: 2, GPUs: 8, Spec: func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"class": "b200"} }}).Add(gangOf(1, 8, none))
			}},
		{name: "pods that wait for nodes that are busy start and end one day", code: answer.NSQuota, exit: 3, wantText: []string{"TFJob hog is charged 16 for pods without a node"}, not: []string{"delete or suspend"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1")
			quota(c, "gpus", list("requests.nvidia.com/gpu", "16"), list("requests.nvidia.com/gpu", "16"))
			c.Add(clustertest.Gang{Name: "hog", Workers: 2, GPUs: 8}).Add(gangOf(1, 8, none))
		}},
		{name: "two gangs with half of their pods each wait for each other", code: answer.NSQuota, exit: 4, fix: "delete or suspend hog", wantText: []string{"TFJob hog is charged 8 for pods without a node"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			quota(c, "gpus", list("requests.nvidia.com/gpu", "16"), list("requests.nvidia.com/gpu", "16"))
			c.Add(clustertest.Gang{Name: "hog", Workers: 2, GPUs: 8, Missing: 1}).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Missing = 1 }))
		}},
		{name: "one of two with half of their pods has enough when another job has ended", code: answer.NSQuota, exit: 3, not: []string{"delete or suspend"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(clustertest.Gang{Name: "a", Workers: 1, GPUs: 8, Nodes: []string{"n1"}})
			quota(c, "gpus", list("requests.nvidia.com/gpu", "24"), list("requests.nvidia.com/gpu", "24"))
			c.Add(clustertest.Gang{Name: "hog", Workers: 2, GPUs: 8, Missing: 1}).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Missing = 1 }))
		}},
		{name: "it takes the end of both jobs that cannot start", code: answer.NSQuota, exit: 4, fix: "delete or suspend hog and pig", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			quota(c, "gpus", list("requests.nvidia.com/gpu", "16"), list("requests.nvidia.com/gpu", "16"))
			for _, name := range []string{"hog", "pig"} {
				c.Add(clustertest.Gang{Name: name, Workers: 1, GPUs: 8, Spec: func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"class": "b200"} }})
			}
			c.Add(gangOf(2, 8, none))
		}},
		{name: "a service that has no node is charged, and never ends", code: answer.NSQuota, exit: 5, wantText: []string{"Deployment web is charged 8 for pods without a node", "no end of a job frees enough"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8)
			quota(c, "gpus", list("requests.nvidia.com/gpu", "8"), list("requests.nvidia.com/gpu", "8"))
			c.Serves("web", 8, "")
			p := c.S.Pods[len(c.S.Pods)-1]
			p.Namespace = "team"
			c.Add(gangOf(1, 8, none))
		}},
		{name: "a field is mandatory, and the quota is there", code: answer.QuotaNeedsField, exit: 4, first: "must specify limits.cpu for: tensorflow", build: func(c *clustertest.Cluster) {
			quota(c, "q", list("limits.cpu", "80"), nil)
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
			refuse(c, `pods "gang-worker-0" is forbidden: failed quota: q: must specify limits.cpu for: tensorflow`)
		}},
		{name: "a field is mandatory, and nothing was refused yet", code: answer.QuotaNeedsField, exit: 4, first: "quota q makes fields of the pods of Worker mandatory: must specify limits.cpu for: tensorflow; limits.memory for: tensorflow", fix: "limit cpu to 8", build: func(c *clustertest.Cluster) {
			quota(c, "q", list("limits.cpu", "80", "limits.memory", "2Ti"), nil)
			c.Nodes(2, 8).Add(gangOf(2, 8, none, spec(func(p *corev1.PodSpec) {
				delete(p.Containers[0].Resources.Limits, "cpu")
				delete(p.Containers[0].Resources.Limits, "memory")
			})))
		}},
		{name: "fields are mandatory that nothing gives a value", code: answer.QuotaNeedsField, exit: 4, first: "must specify limits.cpu for: tensorflow; memory for: tensorflow", wantText: []string{"gangctl submit sets requests and limits with --cpu and --memory"}, build: func(c *clustertest.Cluster) {
			quota(c, "q", list("limits.cpu", "80", "memory", "2Ti"), nil)
			c.Nodes(2, 8).Add(gangOf(2, 8, none, spec(func(p *corev1.PodSpec) {
				for _, resources := range []corev1.ResourceList{p.Containers[0].Resources.Limits, p.Containers[0].Resources.Requests} {
					delete(resources, "cpu")
					delete(resources, "memory")
				}
			})))
		}},
		{name: "a mandatory field that a webhook sets", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			quota(c, "q", list("limits.cpu", "80"), nil)
			c.Nodes(2, 8).Add(gangOf(2, 8, none, spec(func(p *corev1.PodSpec) { delete(p.Containers[0].Resources.Limits, "cpu") }), func(g *clustertest.Gang) { g.Age = 20 * time.Second }))
			c.S.Probes = []snapshot.Probe{{Kind: "Pod", Namespace: "team", Name: "gang-worker-0", Code: 201}}
		}},
		{name: "the limit was raised and is not in force yet", code: answer.NSQuota, exit: 3, first: "quota gpus of namespace team was raised to 64 GPUs, and that is not in force yet: 0 of 8 GPUs used, and 2 more members need 16", not: []string{"raise requests"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
			quota(c, "gpus", list("requests.nvidia.com/gpu", "8"), list("requests.nvidia.com/gpu", "0")).Spec.Hard = list("requests.nvidia.com/gpu", "64")
		}},
		{name: "it was raised by too little for now", code: answer.NSQuota, exit: 3, first: "8 of 20 GPUs used, 2 more members need 16", fix: "to 24", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
			quota(c, "gpus", list("requests.nvidia.com/gpu", "8"), list("requests.nvidia.com/gpu", "8")).Spec.Hard = list("requests.nvidia.com/gpu", "20")
		}},
		{name: "a quota keeps members from being made that the gang can do without", code: answer.Fits, exit: 3, first: "; 2 of its 4 members are not made for now", wantText: []string{"quota gpus of namespace team keeps 2 of 4 members from being made: 16 of 16 GPUs used, and the 2 that are missing need 16; the gang needs 2"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			quota(c, "gpus", list("requests.nvidia.com/gpu", "16"), list("requests.nvidia.com/gpu", "16"))
			c.Add(gangOf(4, 8, func(g *clustertest.Gang) { g.Min, g.Missing, g.Age = 2, 2, 20*time.Second }))
		}},
		{name: "Services of all members, of which one lacks its own", code: answer.NSQuotaTooSmall, exit: 6, first: "allows 1 services in all, and the gang needs 4", wantText: []string{"requested 3, used 1, limit 1"}, fix: "to 4", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(gangOf(4, 8, func(g *clustertest.Gang) { g.Missing = 2 }))
			quota(c, "net", list("services", "1"), list("services", "1"))
			c.Event("TFJob", "team", "gang", "tfjob-controller", "FailedCreateService", `Error creating: services "gang-worker-1" is forbidden: exceeded quota: net, requested: services=1, used: services=1, limited: services=1`, time.Second)
		}},
		{name: "a field was mandatory: the quota is gone", code: answer.BelowQuorum, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
			refuse(c, `pods "gang-worker-0" is forbidden: failed quota: q: must specify limits.cpu for: tensorflow`)
		}},
	})
}

func TestLimitRange(t *testing.T) {
	limits := func(c *clustertest.Cluster, item corev1.LimitRangeItem) {
		c.Put(&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "caps"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}})
	}
	list := clustertest.List
	check(t, []testCase{
		{name: "above the maximum", code: answer.LimitRange, exit: 4, first: "at most 4 cpu a container, tensorflow has a limit of 8", fix: "request 4 cpu", build: func(c *clustertest.Cluster) {
			limits(c, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: list("cpu", "4")})
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
		}},
		{name: "above the maximum, and a quota is too small: quotas are charged last", code: answer.LimitRange, exit: 4, first: "at most 4 cpu a container", wantText: []string{"NS_QUOTA_TOO_SMALL +quota gpus of namespace team allows 8 GPUs"}, build: func(c *clustertest.Cluster) {
			limits(c, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: list("cpu", "4")})
			hard := list("requests.nvidia.com/gpu", "8")
			c.Put(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gpus"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}, Status: corev1.ResourceQuotaStatus{Hard: hard}})
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
		}},
		{name: "only the limit is above the maximum", code: answer.LimitRange, exit: 4, first: "at most 16 cpu a container, tensorflow has a limit of 32", fix: "limit cpu to 16 in each worker", build: func(c *clustertest.Cluster) {
			limits(c, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: list("cpu", "16")})
			c.Nodes(2, 8).Add(gangOf(2, 8, none, spec(func(p *corev1.PodSpec) { p.Containers[0].Resources.Limits["cpu"] = resource.MustParse("32") })))
		}},
		{name: "the limit is above the maximum and too many times the request", code: answer.LimitRange, exit: 4, fix: "limit cpu to 16 in each worker", not: []string{"limit cpu to 40"}, build: func(c *clustertest.Cluster) {
			limits(c, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: list("cpu", "16"), MaxLimitRequestRatio: list("cpu", "5")})
			c.Nodes(2, 8).Add(gangOf(2, 8, none, spec(func(p *corev1.PodSpec) { p.Containers[0].Resources.Limits["cpu"] = resource.MustParse("64") })))
		}},
		{name: "at the maximum", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			limits(c, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: list("cpu", "8")})
			c.Nodes(2, 8).Add(gangOf(2, 8, none, func(g *clustertest.Gang) { g.Age = 20 * time.Second }))
		}},
		{name: "of another namespace", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			limits(c, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: list("cpu", "4")})
			c.S.LimitRanges[0].Namespace = "other"
			c.Nodes(2, 8).Add(gangOf(2, 8, none, func(g *clustertest.Gang) { g.Age = 20 * time.Second }))
		}},
		{name: "below the minimum", code: answer.LimitRange, exit: 4, first: "no less than 16 cpu a container, tensorflow has a request of 8", fix: "request 16 cpu in each worker", build: func(c *clustertest.Cluster) {
			limits(c, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Min: list("cpu", "16")})
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
		}},
		{name: "nothing is requested: the minimum is the default", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			limits(c, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Min: list("ephemeral-storage", "1Gi")})
			c.Nodes(2, 8).Add(gangOf(2, 8, none, func(g *clustertest.Gang) { g.Age = 20 * time.Second }))
		}},
		{name: "a limit far above the request", code: answer.LimitRange, exit: 4, first: "at most 2 times the request, and tensorflow has .* for a request of 8, a ratio of", fix: "limit cpu to 16 in each worker", build: func(c *clustertest.Cluster) {
			limits(c, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, MaxLimitRequestRatio: list("cpu", "2")})
			c.Nodes(2, 8).Add(gangOf(2, 8, none, spec(func(p *corev1.PodSpec) { p.Containers[0].Resources.Limits["cpu"] = resource.MustParse("32") })))
		}},
		{name: "memory in whole Mi, and no less than is allowed", code: answer.LimitRange, exit: 4, fix: "request 13108Mi memory in each worker", not: []string{"13743895348"}, build: func(c *clustertest.Cluster) {
			limits(c, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, MaxLimitRequestRatio: list("memory", "5")})
			c.Nodes(2, 8).Add(gangOf(2, 8, none, spec(func(p *corev1.PodSpec) { p.Containers[0].Resources.Requests["memory"] = resource.MustParse("4Gi") })))
		}},
		{name: "the pod as a whole, with its init container", code: answer.LimitRange, exit: 4, first: "80Gi memory a pod.*100Gi", build: func(c *clustertest.Cluster) {
			limits(c, corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: list("memory", "80Gi")})
			c.Nodes(2, 8).Add(gangOf(2, 8, none, spec(func(p *corev1.PodSpec) {
				r := list("memory", "100Gi")
				p.InitContainers = []corev1.Container{{Name: "fetch", Resources: corev1.ResourceRequirements{Requests: r, Limits: r}}}
			})))
		}},
		{name: "an init container", code: answer.LimitRange, exit: 4, first: "fetch", fix: "request 8 cpu in container fetch of each worker", build: func(c *clustertest.Cluster) {
			limits(c, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: list("cpu", "8")})
			c.Nodes(2, 8).Add(gangOf(2, 8, none, spec(func(p *corev1.PodSpec) {
				r := list("cpu", "16")
				p.InitContainers = []corev1.Container{{Name: "fetch", Resources: corev1.ResourceRequirements{Requests: r, Limits: r}}}
			})))
		}},
		{name: "only the launcher is too large", code: answer.LimitRange, exit: 4, first: "Launcher", wantText: []string{"Launcher 0/1, Worker 2/2"}, build: func(c *clustertest.Cluster) {
			limits(c, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: list("cpu", "8")})
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) {
				g.Kind, g.More = "MPIJob", []clustertest.Role{{Name: "Launcher", Replicas: 1, CPU: "12", Missing: 1}}
			}))
		}},
		{name: "limit ranges may not be listed", code: answer.LimitRange, exit: 4, first: "maximum cpu usage per Container is 4, but limit is 8", build: func(c *clustertest.Cluster) {
			c.S.Denied = []snapshot.Denial{{Resource: "limitranges"}}
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
			refuse(c, `pods "gang-worker-0" is forbidden: maximum cpu usage per Container is 4, but limit is 8`)
		}},
		{name: "the pods were made before the limit", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			limits(c, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: list("cpu", "4")})
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Age = 20 * time.Second }))
		}},
	})
}

// webhook adds a webhook that is called for pods.
func webhook(c *clustertest.Cluster, name string, change func(map[string]any)) {
	hook := map[string]any{"name": name, "failurePolicy": "Fail"}
	change(hook)
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "webhooks": []any{hook}}}
	u.SetName("config")
	c.Put(u)
}

// exclusive is a JobSet whose Job has a node to itself, and of whose pods only the first is made.
func exclusive(g *clustertest.Gang) {
	g.Kind, g.NoGroup, g.Missing = "JobSet", true, 1
	g.Job = set(map[string]any{"alpha.jobset.sigs.k8s.io/exclusive-topology": "kubernetes.io/hostname"}, "metadata", "annotations")
}

func TestRefused(t *testing.T) {
	check(t, []testCase{
		{name: "a webhook denies the pods of one role", code: answer.AdmissionDenied, exit: 4, first: "validate.kyverno.svc-fail denies the pods of PS: resource Pod/team/gang-ps-0", wantText: []string{"those of PS were refused"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.More = []clustertest.Role{{Name: "PS", Replicas: 1, Missing: 1}} }))
			refuse(c, "admission webhook \"validate.kyverno.svc-fail\" denied the request: \n\nresource Pod/team/gang-ps-0 was blocked due to the following policies\n\nregistries: 'images must come from reg'")
		}},
		{name: "a policy is named once", code: answer.AdmissionDenied, exit: 4, first: "^ValidatingAdmissionPolicy 'no-host-path' denies the pods: hostPath volumes are not allowed$", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
			refuse(c, `pods "gang-worker-0" is forbidden: ValidatingAdmissionPolicy 'no-host-path' with binding 'no-host-path-team' denied request: hostPath volumes are not allowed`)
		}},
		{name: "a webhook of several lines", code: answer.AdmissionDenied, exit: 4, first: "validate.kyverno.svc-fail denies the pods: resource Pod/team/gang-worker-0 was blocked.*require-team", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
			refuse(c, "admission webhook \"validate.kyverno.svc-fail\" denied the request: \n\nresource Pod/team/gang-worker-0 was blocked due to the following policies\n\nrequire-team:\n  autogen: label team is required\n")
		}},
		{name: "a ValidatingAdmissionPolicy", code: answer.AdmissionDenied, exit: 4, first: "no-latest.*must have a digest", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
			refuse(c, `pods "gang-worker-0" is forbidden: ValidatingAdmissionPolicy 'no-latest' with binding 'all' denied request: image must have a digest`)
		}},
		{name: "in the dry run it is accepted", code: answer.BelowQuorum, exit: 3, never: []answer.Code{answer.AdmissionDenied}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
			refuse(c, `admission webhook "policy.example.com" denied the request: missing team label`)
			c.S.Probes = []snapshot.Probe{{Kind: "Pod", Namespace: "team", Name: "gang-worker-0", Code: 201}}
		}},
		{name: "the dry run was not answered", code: answer.Fits, exit: 3, first: "; not evaluated: whether the API server accepts the pods", wantText: []string{"is not known: create Pod team/gang-worker-0: leader changed"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, ungrouped, func(g *clustertest.Gang) { g.Kind, g.Age = "Job", 20*time.Second }))
			c.S.Unanswered = []snapshot.Unanswered{{Kind: "Pod", Namespace: "team", Name: "gang-0", Message: "create Pod team/gang-worker-0: leader changed"}}
		}},
		{name: "one role is accepted, the other is not", code: answer.AdmissionDenied, exit: 4, wantText: []string{"those of PS were refused"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.More = []clustertest.Role{{Name: "PS", Replicas: 1}} }, none))
			c.S.Probes = []snapshot.Probe{{Kind: "Pod", Namespace: "team", Name: "gang-worker-0", Code: 201},
				{Kind: "Pod", Namespace: "team", Name: "gang-ps-0", Code: 403, Message: `pods "gang-ps-0" is forbidden: violates PodSecurity "restricted:latest": hostNetwork`}}
		}},
		{name: "a Job's pods", code: answer.AdmissionDenied, exit: 4, first: "missing team label", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, ungrouped, func(g *clustertest.Gang) { g.Kind = "Job" }))
			c.Event("Job", "team", "gang", "job-controller", "FailedCreate", `Error creating: admission webhook "policy.example.com" denied the request: missing team label`, time.Minute)
		}},
		{name: "a Service that the operator has made already", code: answer.BelowQuorum, exit: 3, never: []answer.Code{answer.AdmissionDenied}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Missing = 1 }))
			c.Event("TFJob", "team", "gang", "tfjob-controller", "FailedCreateService", `services "gang-worker-1" already exists`, time.Second)
		}},
		{name: "a pod that the operator has made already", code: answer.BelowQuorum, exit: 3, never: []answer.Code{answer.AdmissionDenied}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Missing = 1 }))
			refuse(c, `pods "gang-worker-0" already exists`)
		}},
		{name: "a pod that had the name has gone", code: answer.BelowQuorum, exit: 3, never: []answer.Code{answer.AdmissionDenied}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Missing = 1 }))
			refuse(c, `pods "gang-worker-1" already exists`)
		}},
		{name: "a pod that came before it was tried to create one", code: answer.BelowQuorum, exit: 3, never: []answer.Code{answer.AdmissionDenied}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Missing = 1 }))
			c.S.Probes = []snapshot.Probe{{Kind: "Pod", Namespace: "team", Name: "gang-worker-1", Code: 409, Message: `pods "gang-worker-1" already exists`}}
		}},
		{name: "a pod of something else has the name", code: answer.AdmissionDenied, exit: 4, first: "Pod gang-worker-1 has the name", wantText: []string{"it is made by ReplicaSet web"}, fix: "delete Pod gang-worker-1", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Missing = 1 }))
			c.Put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gang-worker-1", OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web", Controller: ptr.To(true)}}}})
			refuse(c, `pods "gang-worker-1" already exists`)
		}},
		{name: "a pod of an earlier job of the name is going", code: answer.BelowQuorum, exit: 3, never: []answer.Code{answer.AdmissionDenied}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Missing = 1 }))
			c.Put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gang-worker-1", DeletionTimestamp: ptr.To(clustertest.Ago(-20 * time.Second))}})
			refuse(c, `object is being deleted: pods "gang-worker-1" already exists`)
		}},
		{name: "a pod of an earlier job of the name does not go", code: answer.AdmissionDenied, exit: 4, first: "Pod gang-worker-1 has the name", wantText: []string{"should have gone 60m ago"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Missing = 1 }))
			c.Put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gang-worker-1", DeletionTimestamp: ptr.To(clustertest.Ago(time.Hour))}})
			refuse(c, `object is being deleted: pods "gang-worker-1" already exists`)
		}},
		{name: "a conflict about the quota passes by itself", code: answer.BelowQuorum, exit: 3, first: "failed to create the pods, and the controller tries again: Operation cannot be fulfilled", never: []answer.Code{answer.AdmissionDenied}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
			refuse(c, `Operation cannot be fulfilled on resourcequotas "gpus": the object has been modified; please apply your changes to the latest version and try again`)
		}},
		{name: "a failure of etcd, of a job without a gang", code: answer.BelowQuorum, exit: 3, first: "tries again: etcdserver: request timed out", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, ungrouped, func(g *clustertest.Gang) { g.Kind = "Job" }))
			c.Event("Job", "team", "gang", "job-controller", "FailedCreate", "Error creating: etcdserver: request timed out", time.Minute)
		}},
		{name: "the API server has failed for minutes", code: answer.BelowQuorum, exit: 5, first: "has failed to create the pods for 12m: Internal error occurred: resource quota evaluation timed out", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, func(g *clustertest.Gang) { g.Age = 20 * time.Minute }))
			refuse(c, `Internal error occurred: resource quota evaluation timed out`)
			e := c.S.Events[len(c.S.Events)-1]
			e.FirstTimestamp, e.Count = clustertest.Ago(12*time.Minute), 9
		}},
		{name: "it failed long ago", code: answer.BelowQuorum, exit: 3, first: "does not report why", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, func(g *clustertest.Gang) { g.Age = time.Hour }))
			c.Event("TFJob", "team", "gang", "tfjob-controller", "FailedCreatePod", "Error creating: etcdserver: leader changed", 30*time.Minute)
		}},
		{name: "a quota had no status, and has one", code: answer.BelowQuorum, exit: 3, never: []answer.Code{answer.AdmissionDenied}, not: []string{"status unknown"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
			quota(c, "gpus", clustertest.List("requests.nvidia.com/gpu", "64"), clustertest.List("requests.nvidia.com/gpu", "0"))
			refuse(c, `pods "gang-worker-0" is forbidden: status unknown for quota: gpus, resources: requests.nvidia.com/gpu`)
		}},
		{name: "pods of the role were accepted since", code: answer.BelowQuorum, exit: 3, never: []answer.Code{answer.AdmissionDenied}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Missing = 1 }, pods(func(_ int, p *corev1.Pod) { p.CreationTimestamp = clustertest.Ago(time.Second) })))
			refuse(c, `admission webhook "policy.example.com" denied the request: missing team label`)
		}},
		{name: "pods of the role were accepted before", code: answer.AdmissionDenied, exit: 4, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Missing = 1 }, pods(func(_ int, p *corev1.Pod) { p.CreationTimestamp = clustertest.Ago(4 * time.Second) })))
			refuse(c, `admission webhook "policy.example.com" denied the request: missing team label`)
		}},
		{name: "pods of another role were accepted since", code: answer.AdmissionDenied, exit: 4, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) {
				g.Missing = 2
				g.More = []clustertest.Role{{Name: "PS", Replicas: 1, Pod: func(_ int, p *corev1.Pod) { p.CreationTimestamp = clustertest.Ago(time.Second) }}}
			}))
			refuse(c, `admission webhook "policy.example.com" denied the request: missing team label`)
		}},
		{name: "the webhook that was down is ignored now", code: answer.BelowQuorum, exit: 3, never: []answer.Code{answer.WebhookDown}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
			webhook(c, "hook.example.com", set("Ignore", "failurePolicy"))
			refuse(c, `Internal error occurred: failed calling webhook "hook.example.com": failed to call webhook: Post "https://hook.infra.svc:443/": EOF`)
		}},
		{name: "the webhook denies, and would be ignored if it were down", code: answer.AdmissionDenied, exit: 4, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
			webhook(c, "hook.example.com", set("Ignore", "failurePolicy"))
			refuse(c, `admission webhook "hook.example.com" denied the request: no`)
		}},
		{name: "the webhook does not select the namespace any more", code: answer.BelowQuorum, exit: 3, never: []answer.Code{answer.AdmissionDenied}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
			c.S.Namespaces[0].Labels = map[string]string{"exempt": "true"}
			webhook(c, "hook.example.com", set([]any{map[string]any{"key": "exempt", "operator": "DoesNotExist"}}, "namespaceSelector", "matchExpressions"))
			refuse(c, `admission webhook "hook.example.com" denied the request: no`)
		}},
		{name: "the webhook is gone, and others are there", code: answer.BelowQuorum, exit: 3, never: []answer.Code{answer.AdmissionDenied}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
			webhook(c, "other.example.com", func(map[string]any) {})
			refuse(c, `admission webhook "hook.example.com" denied the request: no`)
		}},
		{name: "the others of a Job with a domain to itself are not denied", code: answer.NodesBusy, exit: 3, never: []answer.Code{answer.AdmissionDenied}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("busy", 8, "n1", "n2").Add(gangOf(2, 4, exclusive))
			c.Event("Job", "team", "gang-worker-0", "job-controller", "FailedCreate", `Error creating: admission webhook "vpod.kb.io" denied the request: leader pod not yet scheduled, not creating follower pod. this is an expected, transient error`, time.Second)
		}},
		{name: "another message of that webhook is a denial", code: answer.AdmissionDenied, exit: 4, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("busy", 8, "n1", "n2").Add(gangOf(2, 4, exclusive))
			c.Event("Job", "team", "gang-worker-0", "job-controller", "FailedCreate", `Error creating: admission webhook "vpod.kb.io" denied the request: pod missing label`, time.Second)
		}},
		{name: "a request above the container's own limit", code: answer.AdmissionDenied, exit: 4, first: "container tensorflow requests 32 of cpu, more than its own limit of 16", wantText: []string{"were refused 1 time"}, never: []answer.Code{answer.LimitRange}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, spec(func(p *corev1.PodSpec) {
				r := p.Containers[0].Resources
				r.Requests["cpu"], r.Limits["cpu"] = resource.MustParse("32"), resource.MustParse("16")
			})))
			refuse(c, `Pod "gang-worker-0" is invalid: spec.containers[0].resources.requests: Invalid value: "32": must be less than or equal to cpu limit of 16`)
		}},
		{name: "devices without a limit", code: answer.AdmissionDenied, exit: 4, first: "requests 8 of nvidia.com/gpu and has no limit of it", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, spec(func(p *corev1.PodSpec) {
				p.Containers[0].Resources = corev1.ResourceRequirements{Requests: clustertest.List("nvidia.com/gpu", "8")}
			})))
		}},
		{name: "two pods of something else have the names", code: answer.AdmissionDenied, exit: 4, first: "Pods gang-worker-0, gang-worker-1 have the names", alone: true, fix: "delete Pods gang-worker-0, gang-worker-1", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
			for _, name := range []string{"gang-worker-0", "gang-worker-1"} {
				c.Put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Status: corev1.PodStatus{Phase: corev1.PodSucceeded}})
			}
			refuse(c, `pods "gang-worker-0" already exists`)
		}},
		{name: "a PriorityClass that the namespace has only by a quota", code: answer.AdmissionDenied, exit: 4, first: "insufficient quota to match these scopes", fix: "name another priorityClassName than system-node-critical", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, spec(func(p *corev1.PodSpec) { p.PriorityClassName = "system-node-critical" })))
			refuse(c, `pods "gang-worker-0" is forbidden: insufficient quota to match these scopes: [{PriorityClass In [system-node-critical system-cluster-critical]}]`)
		}},
		{name: "a JobSet of something else has the name", code: answer.AdmissionDenied, exit: 4, first: `the API server denies the pods: jobsets.jobset.x-k8s.io "gang" already exists`, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
			c.Put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gang"}})
			refuse(c, `jobsets.jobset.x-k8s.io "gang" already exists`)
		}},
		{name: "a Job of something else has the name", code: answer.AdmissionDenied, exit: 4, first: "Job gang-worker-0 has the name", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, func(g *clustertest.Gang) { g.Kind = "JobSet" }))
			c.S.Jobs = slices.DeleteFunc(c.S.Jobs, func(j *batchv1.Job) bool { return j.Namespace == "team" })
			c.Put(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gang-worker-0", UID: "other"}})
			c.Event("JobSet", "team", "gang", "jobset-controller", "JobCreationFailed", `jobs.batch "gang-worker-0" already exists`, time.Second)
		}},
		{name: "names that no part of an MPIJob gets", code: answer.BelowQuorum, exit: 3, never: []answer.Code{answer.AdmissionDenied}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, withLauncher))
			c.S.Jobs = slices.DeleteFunc(c.S.Jobs, func(j *batchv1.Job) bool { return j.Namespace == "team" })
			c.Put(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gang-worker-0", UID: "other"}})
			c.Put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gang-launcher", UID: "other"}})
		}},
		{name: "the Job of a launcher has its name taken", code: answer.AdmissionDenied, exit: 4, first: "Job gang-launcher has the name", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, withLauncher))
			c.S.Jobs = slices.DeleteFunc(c.S.Jobs, func(j *batchv1.Job) bool { return j.Namespace == "team" })
			c.Put(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gang-launcher", UID: "other"}})
		}},
		{name: "a Job that has the name is being deleted, and has pods", code: answer.AdmissionDenied, exit: 4, first: "Job gang-worker-0 has the name", not: []string{"fix: clear", "waits for finalizer"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, func(g *clustertest.Gang) { g.Kind = "JobSet" }))
			c.S.Jobs = slices.DeleteFunc(c.S.Jobs, func(j *batchv1.Job) bool { return j.Namespace == "team" })
			at := clustertest.Ago(time.Hour)
			c.Put(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gang-worker-0", UID: "other", DeletionTimestamp: &at, Finalizers: []string{"example.com/x"}}})
			ref := metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "gang-worker-0", UID: "other", Controller: ptr.To(true)}
			c.Put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gang-worker-0-x", UID: "pod", OwnerReferences: []metav1.OwnerReference{ref}}})
		}},
		{name: "priority class, with a near name", code: answer.PriorityMissing, exit: 4, first: "gpld.*gold, silver", wantText: []string{"did you mean gold"}, not: []string{"gangctl-scheduler"}, fix: "gold", build: func(c *clustertest.Cluster) {
			c.Put(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "gangctl-scheduler"}, Value: 1000000000})
			for _, name := range []string{"gold", "silver", "system-node-critical"} {
				c.Put(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}})
			}
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
			refuse(c, `pods "gang-worker-0" is forbidden: no PriorityClass with name gpld was found`)
		}},
		{name: "priority class, and the event has expired", code: answer.PriorityMissing, exit: 4, first: "gpld", build: func(c *clustertest.Cluster) {
			c.Put(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}})
			c.Nodes(2, 8).Add(gangOf(2, 8, none, spec(func(p *corev1.PodSpec) { p.PriorityClassName = "gpld" })))
		}},
		{name: "half a GPU, and no event", code: answer.AdmissionDenied, exit: 4, first: "container tensorflow requests 500m of nvidia.com/gpu, which has to be a whole number", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, spec(func(p *corev1.PodSpec) {
				list := clustertest.List("cpu", "1500m", "nvidia.com/gpu", "0.5")
				p.Containers[0].Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
			})))
		}},
		{name: "service account, and the event has expired", code: answer.AccountMissing, exit: 4, first: "trainer", build: func(c *clustertest.Cluster) {
			c.Put(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "default"}})
			c.Nodes(2, 8).Add(gangOf(2, 8, none, spec(func(p *corev1.PodSpec) { p.ServiceAccountName = "trainer" })))
		}},
		{name: "service accounts may not be listed", code: answer.BelowQuorum, exit: 3, build: func(c *clustertest.Cluster) {
			c.S.Denied = []snapshot.Denial{{Resource: "serviceaccounts"}}
			c.Nodes(2, 8).Add(gangOf(2, 8, none, spec(func(p *corev1.PodSpec) { p.ServiceAccountName = "trainer" })))
		}},
		{name: "runtime class, and the event has expired", code: answer.RuntimeMissing, exit: 4, first: "gvisor.*kata", build: func(c *clustertest.Cluster) {
			name := "gvisor"
			c.Put(&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "kata"}})
			c.Nodes(2, 8).Add(gangOf(2, 8, none, spec(func(p *corev1.PodSpec) { p.RuntimeClassName = &name })))
		}},
		{name: "a webhook that times out", code: answer.WebhookDown, exit: 5, first: "hook.example.com", wantText: []string{"context deadline exceeded"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
			refuse(c, `Internal error occurred: failed calling webhook "hook.example.com": failed to call webhook: Post "https://hook.infra.svc:443/mutate?timeout=10s": context deadline exceeded`)
		}},
		{name: "several refusals at once", code: answer.AdmissionDenied, exit: 4, also: []answer.Code{answer.NSQuotaTooSmall}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
			quota(c, "q", clustertest.List("requests.nvidia.com/gpu", "8"), nil)
			refuse(c, `admission webhook "policy.example.com" denied the request: missing team label`)
		}},
		{name: "a Job that was suspended is refused nothing", code: answer.JobSuspended, exit: 4, never: []answer.Code{answer.NSQuota, answer.NSQuotaTooSmall}, build: func(c *clustertest.Cluster) {
			yes := true
			quota(c, "q", clustertest.List("requests.nvidia.com/gpu", "8"), nil)
			c.Nodes(2, 8).Add(gangOf(2, 8, none, ungrouped, func(g *clustertest.Gang) {
				g.Kind, g.BatchJob = "Job", func(j *batchv1.Job) { j.Spec.Suspend = &yes }
			}))
		}},
	})
}

// A refusal by a quota that nothing explains counts with what is assumed to change of the quota, and of the pods.
func TestRefusedByQuotaAssumed(t *testing.T) {
	c := clustertest.New().Nodes(4, 8)
	quota(c, "gpus", clustertest.List("requests.nvidia.com/gpu", "64"), nil)
	c.Add(gangOf(2, 8, none))
	c.S.Probes = exceeds("gang-worker-0", "gpus", "requests.nvidia.com/gpu=8", "requests.nvidia.com/gpu=60", "requests.nvidia.com/gpu=64")
	w := view.New(c.Done())
	found := func(v *view.View) *stage.Finding {
		job, err := v.Find(view.Query{Namespace: "team", Name: "gang"})
		if err != nil {
			t.Fatal(err)
		}
		return stages.Evaluate(context.Background(), v, job, stages.Options{}).Primary
	}
	now := found(w)
	if now.Code != answer.NSQuota || len(now.Fixes) != 1 {
		t.Fatalf("got %+v", now)
	}
	with := func(gpus string) *snapshot.Snapshot {
		return whatif.Edit(w.Snap, kindOf("kubeflow.org", "TFJob"), "team", "gang", func(u *unstructured.Unstructured) {
			containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "tfReplicaSpecs", "Worker", "template", "spec", "containers")
			set(map[string]any{"nvidia.com/gpu": gpus}, "resources", "limits")(containers[0].(map[string]any))
			set(map[string]any{"nvidia.com/gpu": gpus}, "resources", "requests")(containers[0].(map[string]any))
			whatif.Set(u, containers, "spec", "tfReplicaSpecs", "Worker", "template", "spec", "containers")
		})
	}
	for _, tt := range []struct {
		what    string
		s       *snapshot.Snapshot
		refused bool
	}{
		{"a limit that is high enough", now.Fixes[0].Apply(w.Snap), false},
		{"pods that are small enough", with("2"), false},
		{"pods that are smaller, and not enough", with("3"), true},
		{"another node", whatif.MoreNodes(w.Snap, w.Snap.Nodes[0], nil, 1), true},
	} {
		if f := found(w.Assume(tt.s)); (f.Code == answer.NSQuota) != tt.refused {
			t.Errorf("%s: got %s", tt.what, f.Message)
		}
	}
}

// withLauncher makes a gang an MPIJob with a launcher.
func withLauncher(g *clustertest.Gang) {
	g.Kind, g.More = "MPIJob", []clustertest.Role{{Name: "Launcher", Replicas: 1, Missing: 1}}
}

// Of some objects all members have one together, and a quota counts them until they are deleted.
func TestQuotaOfOneForAll(t *testing.T) {
	const jobsets = "count/jobsets.jobset.x-k8s.io"
	refusedSet := func(c *clustertest.Cluster, limit, used string) {
		c.Nodes(2, 8)
		torchRuntime(c)
		c.Add(gangOf(2, 8, none, ungrouped, func(g *clustertest.Gang) { g.Kind = "TrainJob" }))
		quota(c, "obj", clustertest.List(jobsets, limit), clustertest.List(jobsets, used))
		sets := kindOf("jobset.x-k8s.io", "JobSet")
		c.S.Custom[sets] = slices.DeleteFunc(c.S.Custom[sets], func(u *unstructured.Unstructured) bool { return u.GetName() == "gang" })
		c.S.Jobs = nil
		c.Event("TrainJob", "team", "gang", "trainjob-controller", "TrainJobResourcesCreationFailed", `TrainJob resources reconciliation failed: jobsets.jobset.x-k8s.io "gang" is forbidden: exceeded quota: obj, requested: `+jobsets+`=1, used: `+jobsets+`=5, limited: `+jobsets+`=5`, 30*time.Second)
	}
	ended := func(c *clustertest.Cluster, name, by string) {
		u := c.Object(map[string]any{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": map[string]any{"namespace": "team", "name": name, "uid": name}, "spec": map[string]any{},
			"status": map[string]any{"terminalState": "Completed", "conditions": []any{clustertest.Condition("Completed", "True", "AllJobsCompleted", "", time.Hour)}}})
		if by != "" {
			u.SetAnnotations(map[string]string{provenance.UserAnnotation: by})
		}
	}
	check(t, []testCase{
		{name: "used up", code: answer.NSQuota, exit: 5, first: "5 of 5 jobsets.jobset.x-k8s.io used, and the gang needs 1", fix: "to 6", wantText: []string{"count until they are deleted"}, build: func(c *clustertest.Cluster) { refusedSet(c, "5", "5") }},
		{name: "used up, also by one that has ended", code: answer.NSQuota, exit: 4, fix: "delete old, which has ended", build: func(c *clustertest.Cluster) {
			refusedSet(c, "5", "5")
			ended(c, "old", "")
		}},
		{name: "used up, also by one of another user that has ended", code: answer.NSQuota, exit: 5, fix: "delete old, which has ended", build: func(c *clustertest.Cluster) {
			refusedSet(c, "5", "5")
			ended(c, "old", "bob")
		}},
		{name: "used up, also by one of each user, of which the own one is enough", code: answer.NSQuota, exit: 4, fix: "delete own, which has ended", not: []string{"delete old"}, build: func(c *clustertest.Cluster) {
			refusedSet(c, "5", "5")
			ended(c, "old", "bob")
			ended(c, "own", "")
		}},
		{name: "there is room for one again", code: answer.BelowQuorum, exit: 3, first: "refused, last 30s ago, for what is gone now", never: []answer.Code{answer.NSQuota}, build: func(c *clustertest.Cluster) { refusedSet(c, "6", "5") }},
	})
}

// What is refused for the name of the job is one cause, whatever is made of it.
func TestNameTooLong(t *testing.T) {
	long := "gang-" + strings.Repeat("x", 50) + "-worker-12"
	check(t, []testCase{
		{name: "a Pod and a Service", code: answer.AdmissionDenied, exit: 4, first: "the name of the job is not one for all", fix: "shorter by 2 characters at least", alone: true, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, ungrouped))
			for _, kind := range []string{"Pod", "Service"} {
				refuse(c, fmt.Sprintf("%s %q is invalid: metadata.labels: Invalid value: %q: must be no more than 63 characters", kind, long, long))
			}
		}},
		{name: "a label of the user's own", code: answer.AdmissionDenied, exit: 4, first: "denies the pods", fix: "change the pods as", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, ungrouped))
			refuse(c, fmt.Sprintf(`Pod "gang-worker-0" is invalid: metadata.labels: Invalid value: %q: must be no more than 63 characters`, strings.Repeat("y", 64)))
		}},
		{name: "what is made before the pods", code: answer.AdmissionDenied, exit: 4, first: "denies JobSet gang, which comes before its pods", fix: "change the job, or what it is made by", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, ungrouped))
			refuse(c, `JobSet.jobset.x-k8s.io "gang" is invalid: spec.replicatedJobs[0]: Invalid value: "": may not be specified`)
		}},
	})
}
