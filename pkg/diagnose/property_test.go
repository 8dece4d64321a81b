package diagnose

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	answertext "github.com/gangctl/gangctl/pkg/diagnose/text"
)

// clusters is how many random clusters each property is tried on.
const clusters = 2000

// unhurried is the time for each search: a busy machine must not cut one short.
const unhurried = time.Minute

// forRandom calls f for many random clusters, and reports which one failed.
func forRandom(t *testing.T, f func(t *testing.T, r *rand.Rand, w clusterSpec)) {
	t.Helper()
	n := clusters
	if testing.Short() {
		n = 200
	}
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		w := randomCluster(r)
		f(t, r, w)
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, w)
		}
	}
}

func explainRandom(t *testing.T, s *snapshot.Snapshot, o Options) *answer.Answer {
	t.Helper()
	o.Budget = unhurried
	a, err := Explain(context.Background(), s, Query{Namespace: "team", Name: "gang"}, o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func text(t *testing.T, a *answer.Answer) string {
	t.Helper()
	var out bytes.Buffer
	if err := answertext.Write(&out, a, answertext.Options{Verbose: true}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// The order of objects changes nothing.
func TestOrderDoesNotMatter(t *testing.T) {
	forRandom(t, func(t *testing.T, r *rand.Rand, w clusterSpec) {
		// Advice is the slow part, and made of the same answers. Its time stands still: a busy machine must not cut it short.
		o := Options{NoAdvice: r.IntN(4) > 0, Clock: func() time.Time { return clustertest.Now }}
		s := w.build()
		first := explainRandom(t, s, o)
		shuffled := w.build()
		r.Shuffle(len(shuffled.Pods), func(i, j int) { shuffled.Pods[i], shuffled.Pods[j] = shuffled.Pods[j], shuffled.Pods[i] })
		r.Shuffle(len(shuffled.Nodes), func(i, j int) { shuffled.Nodes[i], shuffled.Nodes[j] = shuffled.Nodes[j], shuffled.Nodes[i] })
		for _, list := range shuffled.Custom {
			r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		}
		shuffled.Finish()
		second := explainRandom(t, shuffled, o)
		if first.Confidence.Cut || second.Confidence.Cut { // by a busy machine; the answer reports it
			return
		}
		if a, b := marshal(t, first), marshal(t, second); a != b {
			t.Errorf("two orders, two answers:\n%s\n%s", a, b)
		}
	})
}

// What is kept of an earlier look at a cluster changes no answer.
func TestALaterLookAnswersTheSame(t *testing.T) {
	forRandom(t, func(t *testing.T, r *rand.Rand, w clusterSpec) {
		earlier := w.build()
		now := earlier.Clone()
		now.Pods = slices.DeleteFunc(now.Pods, func(p *corev1.Pod) bool { return p.Spec.NodeName != "" && r.IntN(4) == 0 })
		for i, n := range now.Nodes {
			if r.IntN(3) == 0 {
				n = n.DeepCopy()
				n.Spec.Unschedulable = r.IntN(2) == 0
				now.Nodes[i] = n
			}
		}
		for kind, list := range now.Custom {
			now.Custom[kind] = slices.DeleteFunc(list, func(u *unstructured.Unstructured) bool { return u.GetName() != "gang" && r.IntN(4) == 0 })
		}
		o := Options{NoAdvice: r.IntN(4) > 0, Clock: func() time.Time { return clustertest.Now }, Budget: unhurried}
		q, first := Query{Namespace: "team", Name: "gang"}, NewExplainer(earlier)
		if _, err := first.Explain(t.Context(), q, o); err != nil {
			t.Fatal(err)
		}
		a, err := ExplainerAfter(first.Known(), now).Explain(t.Context(), q, o)
		if err != nil {
			t.Fatal(err)
		}
		anew := explainRandom(t, now, o)
		if a.Confidence.Cut || anew.Confidence.Cut { // by a busy machine; the answer reports it
			return
		}
		if got, want := marshal(t, a), marshal(t, anew); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	})
}

func marshal(t *testing.T, a *answer.Answer) string {
	t.Helper()
	raw, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// The first line of the text and the JSON form agree, and the exit code belongs to the verdict.
func TestTextAndJSONAgree(t *testing.T) {
	forRandom(t, func(t *testing.T, _ *rand.Rand, w clusterSpec) {
		a := explainRandom(t, w.build(), Options{NoAdvice: true})
		var back answer.Answer
		if err := json.Unmarshal([]byte(marshal(t, a)), &back); err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(text(t, a), "\n")
		if first != string(back.Verdict)+"  "+back.Headline {
			t.Errorf("first line %q, JSON %q %q", first, back.Verdict, back.Headline)
		}
		if back.Exit != answer.ExitCode(back.Verdict, back.Who, back.Never) {
			t.Errorf("exit %d does not belong to %s %s never=%v", back.Exit, back.Verdict, back.Who, back.Never)
		}
		if back.Primary == nil && back.Verdict != answer.Running {
			t.Errorf("%s without a reason", back.Verdict)
		}
	})
}

// Every action that is offered makes the gang start, done by its stable keys on the numbers from which the cluster is built;
// no part of a set of jobs would do.
func TestActionsWork(t *testing.T) {
	known := map[answer.ActionKind]int{}
	forRandom(t, func(t *testing.T, _ *rand.Rand, w clusterSpec) {
		a := explainRandom(t, w.build(), Options{})
		for _, x := range a.Unblock {
			then := answer.Waiting
			if blocked := strings.Contains(x.Text, ", and then it is blocked: "); blocked {
				then = answer.Blocked
			} else if !x.Verified && !strings.Contains(x.Text, ", and then it waits: ") {
				t.Errorf("unverified advice: %+v", x)
			}
			changed, ok := w.apply(string(x.Kind), x.Change)
			if !ok {
				continue
			}
			known[x.Kind]++
			after := explainRandom(t, changed.build(), Options{NoAdvice: true})
			if x.Verified && after.Verdict != answer.FitsNow || !x.Verified && after.Verdict != then {
				t.Errorf("after %s %v: %s %s", x.Kind, x.Change, after.Verdict, after.Headline)
			}
			if x.Kind == answer.Wait || x.Kind == answer.Evict {
				checkMinimal(t, w, x)
			}
		}
	})
	for _, kind := range []answer.ActionKind{answer.Wait, answer.Evict, answer.Fewer, answer.Reshape, answer.Trim, answer.Relax, answer.Uncordon, answer.AddNodes, answer.Fix} {
		if known[kind] == 0 && !testing.Short() {
			t.Errorf("no cluster led to a %s: the test tests less than it should", kind)
		}
	}
}

// checkMinimal drops one job after the other from a set.
func checkMinimal(t *testing.T, w clusterSpec, x answer.Action) {
	t.Helper()
	jobs := x.Change["jobs"].([]string)
	count, limited := x.Change["count"].(int)
	if !limited {
		count = len(jobs)
	}
	set := jobs[:count]
	for i := range set {
		rest := append(append([]string{}, set[:i]...), set[i+1:]...)
		if after := explainRandom(t, w.clone().without(rest).build(), Options{NoAdvice: true}); after.Verdict == answer.FitsNow {
			t.Errorf("%v is not minimal: %v is enough", set, rest)
		}
	}
}

// Never means never: with every job and service gone and every node well and open, there is no room either, by arithmetic
// that has nothing in common with the search.
func TestNeverMeansNever(t *testing.T) {
	forRandom(t, func(t *testing.T, _ *rand.Rand, w clusterSpec) {
		a := explainRandom(t, w.build(), Options{NoAdvice: true})
		var slots int64
		for _, n := range w.nodes {
			if n.tainted && !w.tolerates || w.selector != "" && n.class != w.selector {
				continue
			}
			fits := min(n.gpus/w.gpus, (96-n.daemonCPU)/w.cpu)
			if w.apart {
				fits = min(fits, 1)
			}
			slots += fits
		}
		possible := slots >= int64(w.min)
		if a.Never && possible {
			t.Errorf("never, but %d of %d would fit: %s", slots, w.min, a.Headline)
		}
		if !possible && !a.Never && a.Primary.Code != answer.SelectorNoMatch && a.Primary.Code != answer.ResourceNotOffered && a.Primary.Code != answer.QueueClosed && a.Primary.Code != answer.NoDevicePlugin {
			t.Errorf("only %d of %d fit at best, but the verdict is %s %s: %s", slots, w.min, a.Verdict, a.Primary.Code, a.Headline)
		}
	})
}
