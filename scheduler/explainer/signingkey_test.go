package explainer

import (
	"context"
	"crypto/ed25519"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/pkg/diagnose/published"
)

// The first scheduler makes the key, the next one has the same, and the public key is what all may read, whoever changed it.
func TestSigningKey(t *testing.T) {
	client, now := fake.NewClientset(), clocktesting.NewFakePassiveClock(time.Unix(1e9, 0))
	first, err := NewSigningKey(client.CoreV1(), "ns", now).Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	public := func() ed25519.PublicKey {
		m, err := client.CoreV1().ConfigMaps("ns").Get(t.Context(), published.KeyName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		key, err := published.DecodePublicKey(m)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	if !public().Equal(first.Public()) {
		t.Error("the public key is another one's")
	}
	forged := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: published.KeyName}, Data: map[string]string{published.PublicKeyField: "x"}}
	if _, err := client.CoreV1().ConfigMaps("ns").Update(t.Context(), forged, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	second, err := NewSigningKey(client.CoreV1(), "ns", now).Get(t.Context())
	if err != nil || !second.Equal(first) || !public().Equal(first.Public()) {
		t.Errorf("another scheduler has another key, %v", err)
	}
}

func TestAKeyThatCannotBeHadIsRequestedAgainLater(t *testing.T) {
	client, now := fake.NewClientset(), clocktesting.NewFakeClock(time.Unix(1e9, 0))
	requests, fail := 0, true
	client.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		requests++
		return fail, nil, apierrors.NewForbidden(corev1.Resource("secrets"), published.KeyName, errors.New("no"))
	})
	k := NewSigningKey(client.CoreV1(), "ns", now)
	for range 3 {
		if _, err := k.Get(context.Background()); !apierrors.IsForbidden(err) {
			t.Fatal(err)
		}
	}
	if fail = false; requests != 1 {
		t.Errorf("%d requests within a minute", requests)
	}
	now.Step(keyRetry)
	if _, err := k.Get(context.Background()); err != nil {
		t.Error(err)
	}
}
