package manifest

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// webhookName is the Training Operator's own.
const webhookName = "validator.training-operator.kubeflow.org"

// Webhook returns the configuration that has jobs checked at URLs, by their
// resource, whose certificate ca (PEM) signs.
func Webhook(urls map[string]string, ca []byte) []byte {
	text := fmt.Appendf(nil, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: %s
webhooks:
`, webhookName)
	for _, resource := range slices.Sorted(maps.Keys(urls)) {
		text = fmt.Appendf(text, `
- name: validator.%s.training-operator.kubeflow.org
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  timeoutSeconds: 10
  clientConfig:
    url: %s
    caBundle: %s
  rules:
  - apiGroups: [kubeflow.org]
    apiVersions: [v1]
    operations: [CREATE, UPDATE]
    resources: [%s]
`, strings.TrimSuffix(resource, "s"), urls[resource], base64.StdEncoding.EncodeToString(ca), resource)
	}
	return text
}

// RemoveWebhook lets jobs pass unchecked: without an operator the webhook has no server.
func (a *Applier) RemoveWebhook(ctx context.Context) error {
	gvr := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}
	err := a.Client.Resource(gvr).Delete(ctx, webhookName, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete ValidatingWebhookConfiguration %s: %w", webhookName, err)
	}
	return nil
}

// RemoveWebhooks lets pass unchecked what webhooks of a selector of labels checked: their servers are gone.
func (a *Applier) RemoveWebhooks(ctx context.Context, selector string) error {
	for _, resource := range []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"} {
		gvr := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource}
		if err := a.Client.Resource(gvr).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: selector}); err != nil {
			return fmt.Errorf("delete %s of %s: %w", resource, selector, err)
		}
	}
	return nil
}
