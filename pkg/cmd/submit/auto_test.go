package submit

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
)

const (
	deploymentsPath = "GET /apis/apps/v1/deployments"
	leasesPath      = "GET /apis/coordination.k8s.io/v1/leases"
)

// cluster is a server whose answers can be replaced.
type cluster struct {
	*kubetest.Server
	answers map[string]http.HandlerFunc
}

// on sets what a pattern is answered with.
func (c *cluster) on(pattern string, answer http.HandlerFunc) {
	if c.answers[pattern] == nil {
		c.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { c.answers[pattern](w, r) })
	}
	c.answers[pattern] = answer
}

// with answers a pattern with an object.
func (c *cluster) with(pattern string, code int, object any) {
	c.on(pattern, func(w http.ResponseWriter, _ *http.Request) { kubetest.Write(w, code, object) })
}

// offering is a server that serves resources, as RESOURCE.GROUP/VERSION, in one answer, and takes every object that is posted.
func offering(t *testing.T, resources ...string) *cluster {
	t.Helper()
	s := &cluster{kubetest.New(t), map[string]http.HandlerFunc{}}
	list := apidiscoveryv2.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{APIVersion: "apidiscovery.k8s.io/v2", Kind: "APIGroupDiscoveryList"}}
	for _, r := range resources {
		name, version, _ := strings.Cut(r, "/")
		resource, group, _ := strings.Cut(name, ".")
		list.Items = append(list.Items, apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: group},
			Versions: []apidiscoveryv2.APIVersionDiscovery{{Version: version, Resources: []apidiscoveryv2.APIResourceDiscovery{
				{Resource: resource, Scope: apidiscoveryv2.ScopeNamespace, ResponseKind: &metav1.GroupVersionKind{Kind: kindOf[resource]}}}}}})
		s.on("POST /apis/"+group+"/"+version+"/namespaces/research/"+resource, echo("uid-2"))
	}
	s.on("POST "+jobsPath, echo("uid-1"))
	s.on("GET /apis", func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept"), "APIGroupDiscoveryList") {
			t.Errorf("asked for groups only: %s", r.Header.Get("Accept"))
		}
		w.Header().Set("Content-Type", discovery.AcceptV2)
		if err := json.NewEncoder(w).Encode(list); err != nil {
			t.Error(err)
		}
	})
	return s
}

// kindOf are the kinds of the resources that servers offer here.
var kindOf = map[string]string{"podgroups": "PodGroup", "localqueues": "LocalQueue", "mpijobs": "MPIJob"}

// running adds Deployments to a server, each as NAME=IMAGE.
func running(s *cluster, deployments ...string) {
	list := appsv1.DeploymentList{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DeploymentList"}}
	for _, d := range append(deployments, "coredns=coredns") {
		name, image, _ := strings.Cut(d, "=")
		list.Items = append(list.Items, appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "gangctl-system", Name: name},
			Spec:   appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: image}}}}},
			Status: appsv1.DeploymentStatus{ReadyReplicas: 1}})
	}
	s.with(deploymentsPath, 200, list)
	s.with(leasesPath, 200, coordinationv1.LeaseList{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "LeaseList"}})
}

const (
	spGroups      = "podgroups.scheduling.x-k8s.io/v1alpha1"
	volcanoGroups = "podgroups.scheduling.volcano.sh/v1beta1"
	nativeGroups  = "podgroups.scheduling.k8s.io/v1beta1"
	localQueues   = "localqueues.kueue.x-k8s.io/v1beta2"
)

// The cluster decides, one line reports it, and no more requests are sent than necessary.
func TestAuto(t *testing.T) {
	tests := map[string]struct {
		served, running []string
		args            string
		note, created   string
		requests        int
	}{
		"gangctl's scheduler": {[]string{spGroups, volcanoGroups}, []string{"gang-scheduler=gangctl"}, "",
			"note: dialect scheduler-plugins: scheduler gang-scheduler runs here and reads it\n", "podgroup.scheduling.x-k8s.io/llama created\n", 8},
		"Volcano": {[]string{spGroups, volcanoGroups}, []string{"volcano-scheduler=volcanosh/vc-scheduler"}, "--queue research",
			"note: dialect volcano: scheduler volcano runs here and reads it\n", "podgroup.scheduling.volcano.sh/llama created\n", 8},
		"Kubernetes itself": {[]string{nativeGroups}, nil, "",
			"note: dialect native: its PodGroups are served here; whether scheduler default-scheduler runs and reads it cannot be seen\n", "podgroup.scheduling.k8s.io/llama created\n", 9},
		"a scheduler that is not seen": {[]string{spGroups}, []string{"gang-scheduler=gangctl"}, "--scheduler nope",
			"note: no scheduler is seen that answers to nope; there are: gang-scheduler; without one its members wait indefinitely\n" +
				"note: dialect scheduler-plugins: its PodGroups are served here; whether scheduler nope runs and reads it cannot be seen\n", "podgroup.scheduling.x-k8s.io/llama created\n", 8},
		"one that is not seen, and a dialect": {[]string{spGroups}, nil, "--scheduler nope --dialect scheduler-plugins",
			"note: no scheduler is seen that answers to nope; without one its members wait indefinitely\n", "podgroup.scheduling.x-k8s.io/llama created\n", 8},
		"kube-scheduler itself, on purpose": {[]string{spGroups}, nil, "--scheduler default-scheduler --dialect scheduler-plugins", "", "podgroup.scheduling.x-k8s.io/llama created\n", 5},
		"one that is seen":                  {[]string{spGroups}, []string{"mine=x"}, "--scheduler mine --dialect scheduler-plugins", "", "podgroup.scheduling.x-k8s.io/llama created\n", 8},
		"as typed":                          {[]string{spGroups}, nil, "--dialect scheduler-plugins", "", "podgroup.scheduling.x-k8s.io/llama created\n", 5},
		"none":                              {nil, nil, "--dialect none", "", "", 3},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := offering(t, tt.served...)
			running(s, tt.running...)
			s.on("POST "+podsPath, func(w http.ResponseWriter, _ *http.Request) {
				name := "llama"
				kubetest.Write(w, 201, corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Spec: corev1.PodSpec{SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: &name}}})
			})
			args := append([]string{"submit", "tf", "llama", "--image", "i"}, strings.Fields(tt.args)...)
			out, errOut, failed := typeLine(t.Context(), s.Client, "", args...)
			if failed != nil || errOut != tt.note || out != "tfjob.kubeflow.org/llama created\n"+tt.created {
				t.Errorf("got %v\n%s%s", failed, out, errOut)
			}
			if got := s.Requests(); len(got) != tt.requests {
				t.Errorf("%d requests: %q", len(got), got)
			}
		})
	}
}

// With -o name each object that was created is a line, the job before what it owns.
func TestNames(t *testing.T) {
	s := offering(t, spGroups)
	running(s, "gang-scheduler=gangctl")
	out, _, failed := typeLine(t.Context(), s.Client, "", "submit", "tf", "llama", "--image", "i", "-o", "name")
	if failed != nil || out != "tfjob.kubeflow.org/llama\npodgroup.scheduling.x-k8s.io/llama\n" {
		t.Errorf("got %v\n%s", failed, out)
	}
}

// Nothing is created where no scheduler would start the members together, and the hint has the way out.
func TestAutoRefuses(t *testing.T) {
	tests := map[string]struct {
		served, running []string
		args            string
		message, hint   string
		code            failure.Code
	}{
		"nothing":                         {nil, nil, "", "nothing here would start the members together: dialect scheduler-plugins: the cluster does not serve podgroups.scheduling.x-k8s.io; ", "or add --dialect none to let members start one by one, or --dialect labels to", 1},
		"a definition, and no scheduler":  {[]string{spGroups}, nil, "", "nothing here would start the members together: dialect scheduler-plugins: no scheduler that reads it runs; ", "or --dialect scheduler-plugins to declare", 1},
		"a scheduler without its objects": {[]string{spGroups}, []string{"volcano-scheduler=volcanosh/vc-scheduler"}, "--scheduler volcano", "nothing here would start the members together: dialect volcano: the cluster does not serve podgroups.scheduling.volcano.sh", "", 1},
		"kube-scheduler itself, of a release without gangs": {[]string{spGroups}, []string{"gang-scheduler=gangctl"}, "--scheduler default-scheduler",
			"nothing here would start the members together: ", "or --dialect scheduler-plugins to declare the gang all the same", 1},
		"a queue that no scheduler reads":          {[]string{spGroups}, []string{"gang-scheduler=gangctl"}, "--queue research", "--queue research: nothing here reads it", "leave out --queue", 2},
		"a queue that no scheduler reads, by flag": {[]string{spGroups}, nil, "--queue research --dialect scheduler-plugins", "--queue research: nothing here reads it", "leave out --queue", 2},
		"a queue of Kueue, for a kind that it does not manage": {[]string{spGroups, localQueues}, []string{"gang-scheduler=gangctl"}, "--queue research",
			"--queue research: Kueue does not manage a TFJob here", "integrations.frameworks", 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := offering(t, tt.served...)
			running(s, tt.running...)
			args := append([]string{"submit", "tf", "llama", "--image", "i"}, strings.Fields(tt.args)...)
			out, _, failed := typeLine(t.Context(), s.Client, "", args...)
			if failed == nil || failed.Code != tt.code || !strings.HasPrefix(failed.Message, tt.message) || !strings.Contains(failed.Hint, tt.hint) || out != "" {
				t.Errorf("got %+v", failed)
			}
			for _, r := range s.Requests() {
				if strings.HasPrefix(r, "POST") && !strings.Contains(r, "dryRun=All") {
					t.Errorf("something was created: %s", r)
				}
			}
		})
	}
}

// A job waits in a LocalQueue where Kueue suspends it.
func TestKueue(t *testing.T) {
	s := offering(t, spGroups, localQueues)
	running(s, "gang-scheduler=gangctl")
	s.on("POST "+jobsPath, func(w http.ResponseWriter, r *http.Request) {
		var object map[string]any
		if err := json.NewDecoder(r.Body).Decode(&object); err != nil {
			t.Error(err)
		}
		object["metadata"].(map[string]any)["uid"] = "uid-1"
		object["spec"].(map[string]any)["runPolicy"].(map[string]any)["suspend"] = true
		kubetest.Write(w, 201, object)
	})
	out, _, failed := typeLine(t.Context(), s.Client, "", "submit", "tf", "llama", "--image", "i", "--queue", "research", "-o", "yaml")
	if failed != nil || !strings.Contains(out, "kueue.x-k8s.io/queue-name: research\n") {
		t.Errorf("got %v\n%s", failed, out)
	}
	if n := len(s.Requests()); n > 8 {
		t.Errorf("%d requests: %q", n, s.Requests())
	}
}

// A LeaderWorkerSet cannot be suspended: Kueue gates its pods, which it writes into their templates.
func TestKueueGatesPods(t *testing.T) {
	const path = "/apis/leaderworkerset.x-k8s.io/v1/namespaces/research/leaderworkersets"
	file := `{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {name: vllm}, spec: {replicas: 2,
 leaderWorkerTemplate: {size: 2, workerTemplate: {spec: {containers: [{name: main, image: i}]}}}}}`
	for name, managed := range map[string]bool{"managed": true, "not managed": false} {
		t.Run(name, func(t *testing.T) {
			s := offering(t, spGroups, nativeGroups, localQueues) // kube-scheduler, which may read the latter, does not know the replicas
			running(s, "gang-scheduler=gangctl")
			s.on("POST "+path, func(w http.ResponseWriter, r *http.Request) {
				var object unstructured.Unstructured
				if err := json.NewDecoder(r.Body).Decode(&object.Object); err != nil {
					t.Error(err)
				}
				object.SetUID("uid-1")
				if managed {
					if err := unstructured.SetNestedField(object.Object, "leaderworkerset.x-k8s.io/leaderworkerset",
						"spec", "leaderWorkerTemplate", "workerTemplate", "metadata", "annotations", "kueue.x-k8s.io/pod-suspending-parent"); err != nil {
						t.Error(err)
					}
				}
				kubetest.Write(w, 201, object.Object)
			})
			out, _, failed := typeLine(t.Context(), s.Client, file, "submit", "-f", "-", "--queue", "research", "-o", "yaml")
			switch {
			case !managed:
				if failed == nil || !strings.Contains(failed.Message, "Kueue does not manage a LeaderWorkerSet here") {
					t.Errorf("got %v\n%s", failed, out)
				}
			case failed != nil, !strings.Contains(out, "kueue.x-k8s.io/queue-name: research\n"):
				t.Errorf("got %v\n%s", failed, out)
			}
		})
	}
}

// Where a webhook takes no dry runs, it is not known whether the field of native gangs is kept, and the next dialect is taken; that Kueue may not manage a kind is noted.
func TestProbeIsNotTried(t *testing.T) {
	untried := func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("dryRun") != "" {
			kubetest.Write(w, 400, kubetest.Status(400, metav1.StatusReasonBadRequest, noDryRun, nil))
			return
		}
		echo("uid-1")(w, r)
	}
	for args, tt := range map[string]struct {
		served         []string
		created, noted string
	}{
		"":                 {[]string{nativeGroups, volcanoGroups}, "podgroup.scheduling.volcano.sh/llama created\n", ""},
		"--queue research": {[]string{spGroups, localQueues}, "tfjob.kubeflow.org/llama created\n", "note: whether Kueue manages a TFJob here could not be tried: "},
	} {
		s := offering(t, tt.served...)
		if args == "" {
			s.Refuse(deploymentsPath, 403, metav1.StatusReasonForbidden, "no", nil)
			s.Refuse(leasesPath, 403, metav1.StatusReasonForbidden, "no", nil)
		} else {
			running(s, "gang-scheduler=gangctl")
		}
		s.on("POST "+jobsPath, untried)
		out, notes, failed := typeLine(t.Context(), s.Client, "", append([]string{"submit", "tf", "llama", "--image", "i"}, strings.Fields(args)...)...)
		if failed != nil || !strings.Contains(out, tt.created) || !strings.Contains(notes, tt.noted) {
			t.Errorf("%q: got %v, %s%s", args, failed, notes, out)
		}
	}
}

// An API server that drops the field of native gangs is not trusted with one: the next dialect is taken, or none.
func TestFieldIsDropped(t *testing.T) {
	for name, tt := range map[string]struct {
		served []string
		want   string
	}{"another one": {[]string{nativeGroups, volcanoGroups}, "podgroup.scheduling.volcano.sh/llama created\n"}, "none": {[]string{nativeGroups}, ""}} {
		t.Run(name, func(t *testing.T) {
			s := offering(t, tt.served...)
			s.Refuse(deploymentsPath, 403, metav1.StatusReasonForbidden, "no", nil)
			s.Refuse(leasesPath, 403, metav1.StatusReasonForbidden, "no", nil)
			s.Answer("POST "+podsPath, 201, corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}})
			out, _, failed := typeLine(t.Context(), s.Client, "", "submit", "tf", "llama", "--image", "i")
			if tt.want == "" {
				if failed == nil || !strings.Contains(failed.Message, "the API server drops spec.schedulingGroup of its pods") || out != "" {
					t.Errorf("got %+v, %s", failed, out)
				}
				return
			}
			if failed != nil || !strings.HasSuffix(out, tt.want) {
				t.Errorf("got %v, %s", failed, out)
			}
		})
	}
}

// What cannot be read is an error, never a guess.
func TestAutoFails(t *testing.T) {
	for path, want := range map[string]string{"GET /apis": "list API resources", deploymentsPath: "list Deployments", leasesPath: "list Leases"} {
		s := offering(t, spGroups)
		running(s)
		s.on(path, func(w http.ResponseWriter, _ *http.Request) {
			kubetest.Write(w, 500, kubetest.Status(500, metav1.StatusReasonInternalError, "etcd is gone", nil))
		})
		_, _, failed := typeLine(t.Context(), s.Client, "", "submit", "tf", "llama", "--image", "i")
		if failed == nil || !strings.HasPrefix(failed.Message, want) || !strings.Contains(failed.Message, "etcd is gone") {
			t.Errorf("%s: got %+v", path, failed)
		}
	}
}

// An MPIJob is written in the version that is served.
func TestVersionOfMPIJobs(t *testing.T) {
	for _, version := range []string{"v1", "v2beta1"} {
		s := offering(t, "mpijobs.kubeflow.org/"+version)
		out, _, failed := typeLine(t.Context(), s.Client, "", "submit", "mpi", "llama", "--image", "i", "--dialect", "none", "-o", "yaml")
		if failed != nil || !strings.HasPrefix(out, "apiVersion: kubeflow.org/"+version+"\nkind: MPIJob\n") {
			t.Errorf("got %v\n%s", failed, out)
		}
	}
}
