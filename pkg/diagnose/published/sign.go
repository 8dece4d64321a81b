package published

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Whoever may write events of a namespace could write an answer there, with commands for an administrator to paste. So the scheduler
// signs its answers (Ed25519, RFC 8032), and no other is believed. Its private key is in a Secret that only the scheduler may read, the
// public one in a ConfigMap of the same name, which every account may read. Both are in the scheduler's namespace.
const (
	// KeyName is the name of the Secret and of the ConfigMap.
	KeyName = "gang-scheduler-answers"
	// PrivateKeyField holds, in the Secret, the seed of the private key: 32 bytes.
	PrivateKeyField = "seed"
	// PublicKeyField holds, in the ConfigMap, the public key in base64.
	PublicKeyField = "public-key"

	// SignatureAnnotation holds the signature of an answer, in base64.
	SignatureAnnotation = "gangctl.dev/why-pending-signature"
)

// ErrForged means that an event carries an answer that the scheduler did not sign.
var ErrForged = errors.New("the answer is not signed by the scheduler")

// EncodePublicKey returns the content of [PublicKeyField].
func EncodePublicKey(key ed25519.PublicKey) string { return base64.StdEncoding.EncodeToString(key) }

// DecodePublicKey reads the public key from its ConfigMap.
func DecodePublicKey(m *corev1.ConfigMap) (ed25519.PublicKey, error) {
	key, err := base64.StdEncoding.DecodeString(m.Data[PublicKeyField])
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("read ConfigMap %s/%s: %s is no Ed25519 public key", m.Namespace, m.Name, PublicKeyField)
	}
	return key, nil
}

// sign signs the answer in an event.
func sign(e *corev1.Event, key ed25519.PrivateKey) {
	e.Annotations[SignatureAnnotation] = base64.StdEncoding.EncodeToString(ed25519.Sign(key, signed(e)))
}

// isSigned reports whether the answer in an event was signed, for this event.
func isSigned(e *corev1.Event, key ed25519.PublicKey) bool {
	signature, err := base64.StdEncoding.DecodeString(e.Annotations[SignatureAnnotation])
	return err == nil && len(key) == ed25519.PublicKeySize && ed25519.Verify(key, signed(e), signature)
}

// signed is what the signature is made over: the answer, which holds its time and the generation of the job, and the event that it is
// for, whose name holds the UID of the job. A reader compares the generation: an answer that was kept is of the job as it was.
func signed(e *corev1.Event) []byte {
	return []byte(Annotation + "\n" + e.Namespace + "\n" + e.Name + "\n" + e.Annotations[Annotation])
}
