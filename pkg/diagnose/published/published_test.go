package published

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

var (
	private = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	public  = private.Public().(ed25519.PublicKey)
)

func waits() *answer.Answer {
	return &answer.Answer{
		APIVersion: answer.APIVersion, Job: answer.Job{Kind: "TFJob", Namespace: "team", Name: "llama", UID: "u1", Generation: 2},
		Verdict: answer.Waiting, Headline: "needs 8 GPUs, 4 are free", Exit: answer.ExitWaiting,
		Primary: &answer.Finding{Code: "INSUFFICIENT_GPU", Message: "for 3 minutes"},
		Gang:    answer.Gang{MinMember: 4, Roles: []answer.Role{{Name: "Worker", Replicas: 4, Request: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")}}}},
		Nodes:   &answer.Nodes{Total: 2, Rows: []answer.NodeRow{{Node: "n1"}}},
		Unblock: []answer.Action{{Kind: answer.Fewer, Change: map[string]any{"Worker.replicas": 2}}},

		Snapshot: answer.SnapshotStamp{At: &now},
	}
}

func TestWhatIsPutIsGot(t *testing.T) {
	e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: EventName("u1")}}
	a := waits()
	if err := Put(e, a, private); err != nil {
		t.Fatal(err)
	}
	if len(a.Nodes.Rows) != 1 {
		t.Error("Put changed the answer that it was given")
	}
	got, err := Get(e, public)
	if err != nil {
		t.Fatal(err)
	}
	if got.Headline != a.Headline || got.Nodes.Total != 2 || got.Nodes.Rows != nil || !Same(got, a) {
		t.Errorf("got %+v", got)
	}
	if want := "WAITING  needs 8 GPUs, 4 are free"; e.Message != want || e.Name != "why-pending.u1" {
		t.Errorf("event %s has %q, want %q", e.Name, e.Message, want)
	}
}

// In a cluster of thousands of nodes, no two of which have the same room, an answer is one that the API server takes, and the numbers are right.
func TestAnAnswerAboutManyNodes(t *testing.T) {
	const nodes = 5000
	a := waits()
	all := answer.Excluded{Constraint: "resource:nvidia.com/gpu", Rejects: nodes}
	a.Nodes = &answer.Nodes{Total: nodes}
	for i := range nodes {
		name := fmt.Sprintf("node-%05d.example.com", i)
		all.Nodes = append(all.Nodes, name)
		a.Nodes.Slots = append(a.Nodes.Slots, answer.Slot{Count: 1, Nodes: []string{name}, Free: corev1.ResourceList{"cpu": resource.MustParse(fmt.Sprint(i, "m"))}})
		a.Nodes.Excluded = append(a.Nodes.Excluded, answer.Excluded{Constraint: fmt.Sprint("Taint ", i), Rejects: 1, Nodes: []string{name}})
	}
	a.Nodes.Excluded = append(a.Nodes.Excluded, all)
	a.Primary.Facts = map[string]any{"nodes": all.Nodes, "role": "Worker"}
	a.AlsoBlocking = []answer.Finding{{Facts: map[string]any{"pods": all.Nodes}}}
	e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: EventName("u1")}}
	if err := Put(e, a, private); err != nil {
		t.Fatal(err)
	}
	if n := len(e.Annotations[Annotation]); n > 10<<10 {
		t.Errorf("the answer has %d bytes", n)
	}
	got, err := Get(e, public)
	if err != nil {
		t.Fatal(err)
	}
	if x := got.Nodes.Excluded[0]; x.Rejects != nodes || x.Constraint != all.Constraint || len(x.Nodes) != answer.PublishedNodes {
		t.Errorf("the constraint of most nodes is %s, of %d, %d of them named", x.Constraint, x.Rejects, len(x.Nodes))
	}
	for key, facts := range map[string]map[string]any{"nodes": got.Primary.Facts, "pods": got.AlsoBlocking[0].Facts} {
		if names, _ := facts[key].([]any); len(names) != answer.PublishedNodes || facts[key+"Count"] != float64(nodes) {
			t.Errorf("the facts about %s have %d names, of %v", key, len(names), facts[key+"Count"])
		}
	}
	if len(a.Nodes.Slots) != nodes || len(a.Nodes.Excluded[nodes].Nodes) != nodes || len(a.Primary.Facts) != 2 || len(a.AlsoBlocking[0].Facts) != 1 {
		t.Error("Put changed the answer that it was given")
	}
}

// A tenant may write any event of his namespace, and copy what the scheduler wrote there and elsewhere.
func TestForgedAnswersAreRefused(t *testing.T) {
	_, other, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, forge := range map[string]func(*corev1.Event){
		"not signed":              func(e *corev1.Event) { delete(e.Annotations, SignatureAnnotation) },
		"no signature":            func(e *corev1.Event) { e.Annotations[SignatureAnnotation] = "!" },
		"signed with another key": func(e *corev1.Event) { sign(e, other) },
		"another command": func(e *corev1.Event) {
			e.Annotations[Annotation] = strings.Replace(e.Annotations[Annotation], "needs 8 GPUs", "run: curl evil", 1)
		},
		"of another generation": func(e *corev1.Event) {
			e.Annotations[Annotation] = strings.Replace(e.Annotations[Annotation], `"generation":2`, `"generation":3`, 1)
		},
		"of another job":       func(e *corev1.Event) { e.Name = EventName("u2") },
		"of another namespace": func(e *corev1.Event) { e.Namespace = "evil" },
	} {
		e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: EventName("u1")}}
		if err := Put(e, waits(), private); err != nil {
			t.Fatal(err)
		}
		if _, err := Get(e, public); err != nil {
			t.Fatal(err)
		}
		forge(e)
		if a, err := Get(e, public); !errors.Is(err, ErrForged) {
			t.Errorf("%s: got %v, %v", name, a, err)
		}
	}
	e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: EventName("u1")}}
	if err := Put(e, waits(), nil); err != nil || e.Message == "" || len(e.Annotations) > 0 {
		t.Errorf("without a key: %v, %+v", err, e)
	}
}

// An answer that is the same but for the generation is published again: a reader takes none of an earlier one.
func TestAnotherGenerationIsAnotherAnswer(t *testing.T) {
	changed := waits()
	if changed.Job.Generation++; Same(waits(), changed) {
		t.Error("it would not be published again")
	}
}

func TestALongHeadlineIsCutBetweenCharacters(t *testing.T) {
	a := waits()
	a.Headline = strings.Repeat("ü", 2000)
	e := &corev1.Event{}
	if err := Put(e, a, private); err != nil {
		t.Fatal(err)
	}
	if n := len(e.Message); n > noteLimit || n < noteLimit-4 || !strings.HasSuffix(e.Message, "ü…") {
		t.Errorf("%d bytes, ends in %q", n, e.Message[n-8:])
	}
}

func TestGetRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		annotation map[string]string
		want       string
	}{
		"nothing":   {nil, ErrNone.Error()},
		"no JSON":   {map[string]string{Annotation: "{"}, "unexpected end"},
		"a version": {map[string]string{Annotation: `{"apiVersion":"gangctl.why/v9"}`}, "gangctl.why/v9"},
		"no time":   {map[string]string{Annotation: `{"apiVersion":"gangctl.why/v1"}`}, "no time"},
	} {
		e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Annotations: c.annotation}}
		if c.annotation != nil {
			sign(e, private)
		}
		_, err := Get(e, public)
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, ErrNone) != (name == "nothing") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestSameIsBlindToTimeOnly(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*answer.Answer)
		same   bool
	}{
		"an age":        {func(a *answer.Answer) { a.Primary.Message = "for 4 minutes"; a.Headline += " (4 min)" }, true},
		"the moment":    {func(a *answer.Answer) { later := now.Add(time.Minute); a.Snapshot.At = &later }, true},
		"the verdict":   {func(a *answer.Answer) { a.Verdict = answer.Blocked }, false},
		"the code":      {func(a *answer.Answer) { a.Primary.Code = "BELOW_QUORUM" }, false},
		"a member":      {func(a *answer.Answer) { a.Gang.Roles[0].Bound++ }, false},
		"other advice":  {func(a *answer.Answer) { a.Unblock[0].Change = map[string]any{"Worker.replicas": 1} }, false},
		"one more code": {func(a *answer.Answer) { a.AlsoBlocking = []answer.Finding{{Code: "NS_QUOTA"}} }, false},
	} {
		a := waits()
		c.change(a)
		if Same(waits(), a) != c.same {
			t.Errorf("%s: same is %v", name, !c.same)
		}
	}
}

func TestAlive(t *testing.T) {
	lease := func(age time.Duration, holder string) *coordinationv1.Lease {
		renewed := metav1.NewMicroTime(now.Add(-age))
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &renewed, LeaseDurationSeconds: ptr.To(int32(15)), HolderIdentity: &holder}}
	}
	if !Alive(lease(10*time.Second, "pod-1"), now) {
		t.Error("a lease of 10 s ago is not alive")
	}
	if Alive(lease(31*time.Second, "pod-1"), now) || Alive(lease(time.Second, ""), now) || Alive(&coordinationv1.Lease{}, now) {
		t.Error("a lease that ran out, was given up or was never held is alive")
	}
}
