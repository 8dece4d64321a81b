package explainer

import (
	"context"
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/published"
	"github.com/gangctl/gangctl/pkg/gang"
)

var (
	signingKey = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	publicKey  = signingKey.Public().(ed25519.PublicKey)
)

func publisher(client *fake.Clientset) *Publisher {
	return &Publisher{
		Events: client.CoreV1(), Component: "gang-scheduler", Instance: "gang-scheduler-0",
		Key: func(context.Context) (ed25519.PrivateKey, error) { return signingKey, nil },
		Regarding: func(k gang.Key) *corev1.ObjectReference {
			if k != key {
				return nil
			}
			return &corev1.ObjectReference{APIVersion: "scheduling.x-k8s.io/v1alpha1", Kind: "PodGroup", Namespace: k.Namespace, Name: k.Name}
		},
	}
}

func TestOneEventAJob(t *testing.T) {
	client := fake.NewClientset()
	p, s := publisher(client), newFixture()
	a, err := diagnose.NewExplainer(s.snap).Explain(t.Context(), diagnose.Query{Namespace: "team", Name: "gang"}, diagnose.Options{NoAdvice: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := p.Publish(t.Context(), key, a); err != nil {
			t.Fatal(err)
		}
	}
	got, err := client.CoreV1().Events("team").Get(t.Context(), nameOf(key, a), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	read, err := published.Get(got, publicKey)
	if err != nil || read.Headline != a.Headline || got.InvolvedObject.Kind != "PodGroup" || got.Reason != "GangTooBig" {
		t.Errorf("%v: event %+v", err, got)
	}
	stands := func(want int) {
		t.Helper()
		recalled, err := p.Published(t.Context())
		if err != nil || len(recalled) != want || want > 0 && recalled[key].Job.UID != a.Job.UID {
			t.Errorf("%v: %d answers stand, want %d: %v", err, len(recalled), want, recalled)
		}
	}
	stands(1)
	if err := p.Publish(t.Context(), key, withdrawn(a, *a.Snapshot.At)); err != nil {
		t.Fatal(err)
	}
	stands(0)
	got, err = client.CoreV1().Events("team").Get(t.Context(), nameOf(key, a), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := published.Get(got, publicKey); !errors.Is(err, published.ErrNone) || got.Type != corev1.EventTypeNormal || strings.Contains(got.Message, "Insufficient") {
		t.Errorf("taken back: %v, %+v", err, got)
	}
}

func TestNoObjectToPublishOn(t *testing.T) {
	client := fake.NewClientset()
	p := publisher(client)
	other := gang.Key{Dialect: gang.Labels, Namespace: "team", Name: "gone"}
	if err := p.Publish(t.Context(), other, &answer.Answer{}); err != nil || len(client.Actions()) != 0 {
		t.Errorf("%v, %v", err, client.Actions())
	}
}

func TestRefusalsAreErrors(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"forbidden":             {apierrors.NewForbidden(corev1.Resource("events"), "e", errors.New("no")), true},
		"namespace is going":    {terminating(), false},
		"namespace is gone":     {apierrors.NewNotFound(corev1.Resource("namespaces"), "team"), false},
		"server does not speak": {errors.New("connection refused"), true},
	} {
		client := fake.NewClientset()
		client.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, c.err })
		a := &answer.Answer{APIVersion: answer.APIVersion, Verdict: answer.Waiting, Job: answer.Job{UID: "u"}}
		if err := publisher(client).Publish(t.Context(), key, a); (err != nil) != c.want {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func terminating() error {
	err := apierrors.NewForbidden(corev1.Resource("events"), "e", errors.New("namespace team is being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

func TestAGangWithoutAJobHasAName(t *testing.T) {
	name := nameOf(gang.Key{Dialect: gang.Labels, Namespace: "team", Name: "bare"}, &answer.Answer{})
	if name != "why-pending.labels.bare" {
		t.Errorf("got %q", name)
	}
	for _, odd := range []string{"My_Gang", "a b", strings.Repeat("x", 300), "-", "größe"} {
		name := nameOf(gang.Key{Dialect: gang.Volcano, Namespace: "team", Name: odd}, &answer.Answer{})
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			t.Errorf("%q is published as %q: %v", odd, name, problems)
		}
	}
}

// The API server selects, and gives them in pages.
func TestPublishedAnswersAreReadInPages(t *testing.T) {
	client := fake.NewClientset()
	first := true
	client.PrependReactor("list", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if got := action.(clienttesting.ListAction).GetListRestrictions().Fields.String(); got != "reportingComponent=gang-scheduler" {
			t.Errorf("selects %q", got)
		}
		list := &corev1.EventList{Items: []corev1.Event{{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "other"}, ReportingController: "gang-scheduler"}}}
		if first {
			list.Continue = "more"
		} else {
			e := corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "why-pending.u", Annotations: map[string]string{gangAnnotation: key.VirtualName()}}, ReportingController: "gang-scheduler"}
			at := time.Now()
			if err := published.Put(&e, &answer.Answer{APIVersion: answer.APIVersion, Snapshot: answer.SnapshotStamp{At: &at}}, signingKey); err != nil {
				t.Fatal(err)
			}
			list.Items = append(list.Items, e)
		}
		first = false
		return true, list, nil
	})
	if recalled, err := publisher(client).Published(t.Context()); err != nil || len(recalled) != 1 || recalled[key] == nil {
		t.Errorf("%v, %v", recalled, err)
	}
	client.PrependReactor("list", "events", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no") })
	if _, err := publisher(client).Published(t.Context()); err == nil {
		t.Error("a list that failed is no error")
	}
}
