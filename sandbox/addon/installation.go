package addon

import (
	"encoding/base64"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// Label is on definitions of webhooks, with the name of the controller that they are of.
const Label = "sandbox.gangctl.dev/controller"

// Installation is what a project installs its controller with, as far as a controller that runs outside of the cluster needs it. What would
// run it in the cluster, such as its Deployment, is left out.
type Installation struct {
	// Definitions are its kinds; Rights its namespace and account, and what that may do.
	Definitions, Rights [][]byte
	// Webhooks are their definitions, by which the API server calls it at its place, and Paths where it has them there.
	Webhooks [][]byte
	Paths    []string
	// Objects are of its own kinds, such as the runtimes of Trainer; its webhooks check them.
	Objects [][]byte
}

// Installation reads the manifest of a folder for a controller at a place, whose certificate ca (PEM) signs.
func (c Controller) Installation(folder string, p Place, ca []byte) (*Installation, error) {
	objects, err := c.read(folder)
	if err != nil {
		return nil, err
	}
	own := map[string]bool{} // API groups
	for _, o := range objects {
		if group, _, _ := unstructured.NestedString(o.Object, "spec", "group"); o.GetKind() == "CustomResourceDefinition" {
			own[group] = true
		}
	}
	installation := &Installation{}
	for _, o := range objects {
		to := installation.part(o, own)
		if o.GetKind() == "Service" && o.GetName() == c.Service {
			// The controller's certificate is for this name, which leads to this machine.
			to, o.Object["spec"] = &installation.Rights, map[string]any{"type": "ExternalName", "externalName": "127.0.0.1"}
		}
		if to == nil {
			continue
		}
		paths, err := c.redirect(o, p, ca)
		if err != nil {
			return nil, fmt.Errorf("%s: %s %s: %w", c.manifest(folder), o.GetKind(), o.GetName(), err)
		}
		installation.Paths = append(installation.Paths, paths...)
		text, err := o.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("encode %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		*to = append(*to, text)
	}
	return installation, nil
}

// part is where an object belongs; nil for what is left out.
func (i *Installation) part(o *unstructured.Unstructured, own map[string]bool) *[][]byte {
	switch o.GetKind() {
	case "CustomResourceDefinition":
		return &i.Definitions
	case "Namespace", "ServiceAccount", "Secret", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding":
		return &i.Rights
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		return &i.Webhooks
	}
	if own[o.GroupVersionKind().Group] {
		return &i.Objects
	}
	return nil
}

// read returns the objects of the controller's manifest.
func (c Controller) read(folder string) ([]*unstructured.Unstructured, error) {
	path := c.manifest(folder)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, missing("manifest", c.Name, err)
	}
	objects, err := install.Decode(data)
	if err == nil && len(objects) == 0 {
		err = fmt.Errorf("there are no objects in it")
	}
	if err != nil {
		return nil, failure.Errorf("the manifest %s of the controller %s: %w", path, c.Name, err).WithHint("make it again: %s", Build)
	}
	return objects, nil
}

// redirect has the API server call the webhooks of an object, or the conversion of a kind, at a place instead of by a Service in the cluster.
// It returns the paths of webhooks.
func (c Controller) redirect(o *unstructured.Unstructured, p Place, ca []byte) (paths []string, err error) {
	switch o.GetKind() {
	case "CustomResourceDefinition":
		webhook, found, err := unstructured.NestedMap(o.Object, "spec", "conversion", "webhook")
		if err != nil || !found {
			return nil, err
		}
		if _, err := c.call(webhook, p, ca); err != nil {
			return nil, err
		}
		return nil, unstructured.SetNestedMap(o.Object, webhook, "spec", "conversion", "webhook")
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		list, _, err := unstructured.NestedSlice(o.Object, "webhooks")
		if err != nil {
			return nil, err
		}
		for _, item := range list {
			webhook, _ := item.(map[string]any)
			path, err := c.call(webhook, p, ca)
			if err != nil {
				return nil, err
			}
			paths = append(paths, path)
		}
		labels := o.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[Label] = c.Name
		o.SetLabels(labels)
		return paths, unstructured.SetNestedSlice(o.Object, list, "webhooks")
	}
	return nil, nil
}

// call replaces how one webhook is called, and returns its path.
func (c Controller) call(webhook map[string]any, p Place, ca []byte) (string, error) {
	service, found, err := unstructured.NestedMap(webhook, "clientConfig", "service")
	if err != nil {
		return "", err
	}
	if !found {
		return "", fmt.Errorf("webhook %v is not called by a Service", webhook["name"])
	}
	path, _ := service["path"].(string)
	if c.Service != "" {
		service["port"] = int64(p.WebhookPort)
		webhook["clientConfig"] = map[string]any{"service": service}
		return path, nil
	}
	webhook["clientConfig"] = map[string]any{"url": "https://" + p.Webhook() + path, "caBundle": base64.StdEncoding.EncodeToString(ca)}
	return path, nil
}
