package jobs

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
)

// groupsPath is where the groups of the coscheduling plugin are served.
const groupsPath = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/research/podgroups"

// inGroup is a Job of Kubernetes of four pods that name a group.
func inGroup(name, group string) *gang.Job {
	four := int32(4)
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: name}, Spec: batchv1.JobSpec{Parallelism: &four, Completions: &four,
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"scheduling.x-k8s.io/pod-group": group}}}}}
	job := batchjob.Convert(j)
	return &job
}

// podGroup is a group with a minimum.
func podGroup(name string, minimum int64) map[string]any {
	return map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": map[string]any{"namespace": "research", "name": name},
		"spec": map[string]any{"minMember": minimum}}
}

// serveGroups makes a server serve the kind, and answers for its one group and its list.
func serveGroups(s *kubetest.Server, groups ...map[string]any) {
	serveVersions(s, "scheduling.x-k8s.io", "v1alpha1")
	s.Answer("GET "+groupsPath, 200, map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroupList", "metadata": map[string]any{}, "items": groups})
	for _, group := range groups {
		s.Answer("GET "+groupsPath+"/"+group["metadata"].(map[string]any)["name"].(string), 200, group)
	}
	s.Refuse("GET "+groupsPath+"/none", 404, metav1.StatusReasonNotFound, `podgroups.scheduling.x-k8s.io "none" not found`, &metav1.StatusDetails{Name: "none", Kind: "podgroups"})
}

// serveVersions makes a server serve an API group, the preferred version first.
func serveVersions(s *kubetest.Server, group string, versions ...string) {
	found := metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: group}
	for _, v := range versions {
		found.Versions = append(found.Versions, metav1.GroupVersionForDiscovery{GroupVersion: group + "/" + v, Version: v})
	}
	found.PreferredVersion = found.Versions[0]
	s.Answer("GET /apis/"+group, 200, found)
}

func TestMinimums(t *testing.T) {
	stated, two := inGroup("stated", "a"), int32(2)
	stated.MinMember = &two
	for _, c := range []struct {
		name     string
		jobs     []*gang.Job
		want     []int32 // 0 for none
		requests []string
	}{
		{"one job", []*gang.Job{inGroup("x", "a")}, []int32{3}, []string{"GET /apis/scheduling.x-k8s.io", "GET " + groupsPath + "/a"}},
		{"its group is not there", []*gang.Job{inGroup("x", "none")}, []int32{0}, []string{"GET /apis/scheduling.x-k8s.io", "GET " + groupsPath + "/none", "GET /apis/scheduling.sigs.k8s.io"}},
		{"two jobs of one group", []*gang.Job{inGroup("x", "a"), inGroup("y", "a")}, []int32{0, 0}, []string{"GET /apis/scheduling.x-k8s.io", "GET " + groupsPath + "/a"}},
		{"many", []*gang.Job{inGroup("x", "a"), inGroup("y", "b"), inGroup("z", "none")}, []int32{3, 1, 0}, []string{"GET /apis/scheduling.x-k8s.io", "GET " + groupsPath, "GET /apis/scheduling.sigs.k8s.io"}},
		{"no object has such a name", []*gang.Job{inGroup("x", "../a"), inGroup("y", "a%2f"), inGroup("z", "..")}, []int32{0, 0, 0}, nil},
		{"the job states it", []*gang.Job{stated}, []int32{2}, nil},
	} {
		s := kubetest.New(t)
		serveGroups(s, podGroup("a", 3), podGroup("b", 1))
		client, err := s.Client()
		if err != nil {
			t.Fatal(err)
		}
		if unread := Minimums(t.Context(), client, "research", c.jobs); unread != nil {
			t.Errorf("%s: %v", c.name, unread)
		}
		for i, job := range c.jobs {
			if got := job.MinMember; (got == nil) != (c.want[i] == 0) || got != nil && *got != c.want[i] {
				t.Errorf("%s: minimum of %s is %v, want %d", c.name, job.Meta.Name, got, c.want[i])
			}
		}
		var requests []string
		for _, r := range s.Requests() {
			path, _, _ := strings.Cut(r, "?")
			requests = append(requests, path)
		}
		if !slices.Equal(requests, c.requests) {
			t.Errorf("%s: requests %q, want %q", c.name, requests, c.requests)
		}
	}
}

// The API server prefers v1 of Kubernetes' own group, which has no PodGroups.
func TestMinimumOfANativeGroup(t *testing.T) {
	s := kubetest.New(t)
	serveVersions(s, "scheduling.k8s.io", "v1", "v1beta1")
	const path = "/apis/scheduling.k8s.io/v1beta1/namespaces/research/podgroups"
	group := map[string]any{"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": map[string]any{"namespace": "research", "name": "a"},
		"spec": map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": int64(3)}}}}
	s.Answer("GET "+path+"/a", 200, group)
	s.Answer("GET "+path, 200, map[string]any{"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroupList", "metadata": map[string]any{}, "items": []any{group}})
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	native := func(name, group string) *gang.Job {
		job := inGroup(name, "")
		job.Roles[0].Template.Labels = nil
		job.Roles[0].Template.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
		return job
	}
	for _, all := range [][]*gang.Job{{native("x", "a")}, {native("x", "a"), native("y", "other")}} {
		if unread := Minimums(t.Context(), client, "research", all); unread != nil || all[0].MinMember == nil || *all[0].MinMember != 3 {
			t.Errorf("%d jobs: got %v, minimum %v", len(all), unread, all[0].MinMember)
		}
	}
}

// Groups that cannot be read, for want of a right or because something of theirs does not work, are no reason to show nothing.
func TestMinimumsThatCannotBeRead(t *testing.T) {
	for code, reason := range map[int]metav1.StatusReason{403: metav1.StatusReasonForbidden, 500: metav1.StatusReasonInternalError, 503: metav1.StatusReasonServiceUnavailable} {
		s := kubetest.New(t)
		serveGroups(s)
		s.Refuse("GET "+groupsPath+"/a", code, reason, "not today", nil)
		s.Refuse("GET "+groupsPath+"/b", code, reason, "not today", nil)
		client, err := s.Client()
		if err != nil {
			t.Fatal(err)
		}
		job := inGroup("x", "a")
		if unread := Minimums(t.Context(), client, "research", []*gang.Job{job}); unread == nil || !strings.HasPrefix(unread.Error(), "get PodGroup research/a: ") || job.MinMember != nil {
			t.Errorf("%d: got %v, minimum %v", code, unread, job.MinMember)
		}
	}
}

// A right that is missing for the groups of an older release is no trouble where the newer ones are read.
func TestMinimumOfOneOfTwoKinds(t *testing.T) {
	s := kubetest.New(t)
	serveVersions(s, "scheduling.x-k8s.io", "v1alpha1")
	s.Refuse("GET "+groupsPath+"/a", 403, metav1.StatusReasonForbidden, "not yours", nil)
	serveVersions(s, "scheduling.sigs.k8s.io", "v1alpha1")
	group := podGroup("a", 3)
	group["apiVersion"] = "scheduling.sigs.k8s.io/v1alpha1"
	s.Answer("GET /apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/research/podgroups/a", 200, group)
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	job := inGroup("x", "a")
	if unread := Minimums(t.Context(), client, "research", []*gang.Job{job}); unread != nil || job.MinMember == nil || *job.MinMember != 3 {
		t.Errorf("got %v, minimum %v", unread, job.MinMember)
	}
}
