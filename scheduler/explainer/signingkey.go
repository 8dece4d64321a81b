package explainer

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/diagnose/published"
)

// keyRetry is the time after which a key that could not be had is requested again.
const keyRetry = time.Minute

// SigningKey is the key with which answers are signed. It outlives the scheduler: the first one makes it, in a Secret of its own
// namespace, and every one sees to it that all accounts can read the public key.
type SigningKey struct {
	client    coreclient.CoreV1Interface
	namespace string
	clock     clock.PassiveClock

	mu    sync.Mutex
	key   ed25519.PrivateKey
	tried time.Time
	err   error
}

// NewSigningKey returns the key of the scheduler that runs in a namespace. Nothing is read before it is needed.
func NewSigningKey(client coreclient.CoreV1Interface, namespace string, clock clock.PassiveClock) *SigningKey {
	return &SigningKey{client: client, namespace: namespace, clock: clock}
}

// Get returns the key. A failure is remembered for a minute.
func (k *SigningKey) Get(ctx context.Context) (ed25519.PrivateKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.key != nil || k.err != nil && k.clock.Since(k.tried) < keyRetry {
		return k.key, k.err
	}
	k.tried = k.clock.Now()
	key, err := k.private(ctx)
	if err == nil {
		err = k.publish(ctx, key)
	}
	if k.err = err; err != nil {
		klog.FromContext(ctx).Error(err, "Cannot sign answers to why-pending: gangctl does not use them")
		return nil, err
	}
	k.key = key
	return key, nil
}

// private reads the private key, or makes it.
func (k *SigningKey) private(ctx context.Context) (ed25519.PrivateKey, error) {
	secrets := k.client.Secrets(k.namespace)
	secret, err := secrets.Get(ctx, published.KeyName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, made, random := ed25519.GenerateKey(nil)
		if random != nil {
			return nil, fmt.Errorf("make a key: %w", random)
		}
		secret, err = secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: k.meta(), Data: map[string][]byte{published.PrivateKeyField: made.Seed()},
		}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // another replica was quicker
			secret, err = secrets.Get(ctx, published.KeyName, metav1.GetOptions{})
		}
	}
	if err != nil {
		return nil, fmt.Errorf("key of answers: %w", err)
	}
	seed := secret.Data[published.PrivateKeyField]
	if len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("key of answers: Secret %s/%s: %s has %d bytes, want %d", k.namespace, secret.Name, published.PrivateKeyField, len(seed), ed25519.SeedSize)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// publish writes the public key where every account may read it.
func (k *SigningKey) publish(ctx context.Context, key ed25519.PrivateKey) error {
	public, _ := key.Public().(ed25519.PublicKey)
	maps, text := k.client.ConfigMaps(k.namespace), published.EncodePublicKey(public)
	m := &corev1.ConfigMap{ObjectMeta: k.meta(), Data: map[string]string{published.PublicKeyField: text}}
	_, err := maps.Update(ctx, m, metav1.UpdateOptions{}) // whatever it held
	if apierrors.IsNotFound(err) {
		_, err = maps.Create(ctx, m, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("public key of answers: %w", err)
	}
	return nil
}

func (k *SigningKey) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: k.namespace, Name: published.KeyName, Labels: map[string]string{"app.kubernetes.io/part-of": "gangctl"}}
}
