package diagnose

import (
	"context"
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
)

// foreignNames are the names of what a snapshot holds in other namespaces than one, and of these namespaces, without those that its own
// objects and those of the whole cluster have, too.
func foreignNames(s *snapshot.Snapshot, namespace string) []string {
	own, foreign := map[string]bool{namespace: true}, map[string]bool{}
	add := func(o metav1.Object) {
		switch o.GetNamespace() {
		case namespace, "":
			own[o.GetName()] = true
			for _, ref := range o.GetOwnerReferences() {
				own[ref.Name] = true
			}
		default:
			foreign[o.GetName()], foreign[o.GetNamespace()] = true, true
			for _, ref := range o.GetOwnerReferences() {
				foreign[ref.Name] = true
			}
		}
	}
	for _, n := range s.Nodes {
		own[n.Name] = true
	}
	for _, list := range s.Custom {
		for _, o := range list {
			add(o)
		}
	}
	for _, e := range s.Events {
		if e.InvolvedObject.Namespace == namespace {
			own[e.Source.Component], own[e.ReportingController] = true, true
		}
	}
	for _, p := range s.Pods {
		add(p)
		own[p.Spec.SchedulerName] = true // which its Deployment may be called, too
	}
	addAll(add, s.Jobs)
	addAll(add, s.ReplicaSets)
	addAll(add, s.Deployments)
	addAll(add, s.DaemonSets)
	addAll(add, s.Claims)
	addAll(add, s.ResourceClaims)
	addAll(add, s.Leases)
	var names []string
	for name := range foreign {
		if !own[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func addAll[T metav1.Object](add func(metav1.Object), list []T) {
	for _, o := range list {
		add(o)
	}
}

// named are the names that occur in an answer.
func named(t *testing.T, a *answer.Answer, names []string) (found []string) {
	t.Helper()
	brief := *a
	// What others wrote into the namespace is there already.
	brief.Scheduler = nil
	raw, err := json.Marshal(&brief)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if regexp.MustCompile(`(^|[^a-z0-9.-])` + regexp.QuoteMeta(name) + `($|[^a-z0-9.-]|\.($|[^a-z0-9]))`).Match(raw) {
			found = append(found, name)
		}
	}
	return found
}

// checkReader holds the answer for the readers of a namespace to that for the caller: it names nothing of other namespaces, and is the same
// in all else that counts.
func checkReader(t *testing.T, s *snapshot.Snapshot, q Query) (hidden int) {
	t.Helper()
	ctx, names := context.Background(), foreignNames(s, q.Namespace)
	all, err := Explain(ctx, s, q, Options{})
	if err != nil {
		return 0 // there is no such job
	}
	a, err := Explain(ctx, s, q, Options{Reader: audience.Hidden.Reader(q.Namespace)})
	if err != nil {
		t.Fatal(err)
	}
	if found := named(t, a, names); len(found) > 0 {
		raw, err := json.MarshalIndent(a, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		t.Errorf("the answer names %s", strings.Join(found, ", "))
		for line := range strings.Lines(string(raw)) {
			if slices.ContainsFunc(found, func(name string) bool { return strings.Contains(line, name) }) {
				t.Log(strings.TrimSpace(line))
			}
		}
	}
	open, err := Explain(ctx, s, q, Options{Reader: audience.Named.Reader(q.Namespace)})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := len(named(t, all, names)), len(named(t, open, names)); a != b {
		t.Errorf("with names allowed %d are named, and %d to the caller", b, a)
	}
	if a.Verdict != all.Verdict || len(a.AlsoBlocking) != len(all.AlsoBlocking) || a.Primary != nil && a.Primary.Code != all.Primary.Code {
		t.Errorf("%s for the caller, %s for the reader", all.Headline, a.Headline)
	}
	return len(named(t, all, names))
}

func TestAnAnswerNamesNothingOfOtherNamespaces(t *testing.T) {
	hidden := 0
	eachCase(t, acceptanceCases, 48, func(t *testing.T, dir string, e expectation) {
		if e.Args[0] == "submit" {
			return
		}
		value := func(flag string) string { return e.Args[slices.Index(e.Args, flag)+1] }
		s, err := snapshot.Open(t.Context(), filepath.Join(dir, value("--from")), nil)
		if err != nil {
			t.Fatal(err)
		}
		hidden += checkReader(t, s, Query{Namespace: value("-n"), Name: e.Args[2]})
	})
	if hidden == 0 {
		t.Error("no answer for the caller names anything of other namespaces: nothing was tested")
	}
}

// Every job of every scenario is diagnosed: where a gang waits for one of its own namespace, that one is read by another.
func TestNoScenarioNamesOtherNamespaces(t *testing.T) {
	hidden := 0
	all := slices.Concat(requestScenarios(), podScenarios(), groupScenarios(), queueScenarios(), schedulerScenarios(), placeScenarios(), startScenarios(), lifeScenarios())
	for _, s := range all {
		if s.code == answer.OperatorRBAC {
			continue // the operator wrote who may not do it into the namespace
		}
		t.Run(s.name, func(t *testing.T) {
			c := clustertest.New()
			s.build(c)
			hidden += checkReader(t, elsewhere(c.Done()), Query{Namespace: "team", Name: "gang"})
		})
	}
	if hidden < 20 {
		t.Errorf("%d names hidden", hidden)
	}
}

// elsewhere moves all pods, jobs and groups that are not the gang's to another namespace, and gives them names that nothing else has.
func elsewhere(s *snapshot.Snapshot) *snapshot.Snapshot {
	const suffix = "-rival"
	mine := func(o metav1.Object) bool {
		return o.GetNamespace() == "team" && (o.GetName() == "gang" || o.GetName() == "wl-gang" || strings.HasPrefix(o.GetName(), "gang-"))
	}
	move := func(o metav1.Object) {
		if mine(o) {
			return
		}
		if o.GetNamespace() == "team" {
			o.SetNamespace("secret")
		}
		o.SetName(o.GetName() + suffix)
		refs := o.GetOwnerReferences()
		for i := range refs {
			refs[i].Name += suffix
		}
		o.SetOwnerReferences(refs)
		for _, set := range []map[string]string{o.GetLabels(), o.GetAnnotations()} {
			for key, value := range set {
				if strings.Contains(key, "job-name") || strings.Contains(key, "group") {
					set[key] = value + suffix
				}
			}
		}
	}
	n := s.Clone()
	n.Pods = slices.Clone(n.Pods)
	for i, p := range n.Pods {
		n.Pods[i] = p.DeepCopy()
		move(n.Pods[i])
	}
	for kind, list := range n.Custom {
		moved := slices.Clone(list)
		for i, u := range moved {
			if kind.Kind != "PodGroup" && kind.Kind != "Workload" && !strings.HasSuffix(kind.Kind, "Job") {
				continue
			}
			moved[i] = u.DeepCopy()
			move(moved[i])
		}
		n.Custom[kind] = moved
	}
	n.Jobs = slices.Clone(n.Jobs)
	for i, j := range n.Jobs {
		n.Jobs[i] = j.DeepCopy()
		move(n.Jobs[i])
	}
	n.Namespaces = append(slices.Clone(n.Namespaces), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "secret", UID: "secret"}})
	return n
}
