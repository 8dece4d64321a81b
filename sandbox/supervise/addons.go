package supervise

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gangctl/gangctl/sandbox/addon"
	"github.com/gangctl/gangctl/sandbox/credential"
	"github.com/gangctl/gangctl/sandbox/manifest"
)

// runningAddon is a controller of another project that the settings choose, with what its project installs.
type runningAddon struct {
	addon.Controller
	addon.Place
	installation *addon.Installation
}

// readAddons reads what the chosen controllers are installed with, for the ports of this run.
func (s *supervisor) readAddons() error {
	ca, err := os.ReadFile(credential.CA(s.dir))
	if err != nil {
		return fmt.Errorf("read certificate authority: %w", err)
	}
	for _, c := range addon.Chosen(s.plan.settings.With) {
		a := runningAddon{Controller: c, Place: s.plan.place(c)}
		if a.installation, err = c.Installation(s.plan.settings.Controllers, a.Place, ca); err != nil {
			return err
		}
		s.addons = append(s.addons, a)
	}
	return nil
}

// bringUpAddons starts the chosen controllers, whose kinds are served. Without their server the webhooks of others, of an earlier run, would
// refuse everything.
func (s *supervisor) bringUpAddons(ctx context.Context, client kubernetes.Interface, applier *manifest.Applier) error {
	others := addon.Label
	if len(s.addons) > 0 {
		others += "," + addon.Label + " notin (" + s.plan.settings.With + ")"
	}
	if err := applier.RemoveWebhooks(ctx, others); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, a := range s.addons {
		group.Go(func() error { return s.bringUpAddon(ctx, client, applier, a) })
	}
	return group.Wait()
}

// bringUpAddon starts a controller, and returns when it answers and its objects are there.
func (s *supervisor) bringUpAddon(ctx context.Context, client kubernetes.Interface, applier *manifest.Applier, a runningAddon) error {
	if err := os.MkdirAll(a.Certificates(), 0o700); err != nil {
		return fmt.Errorf("make the folder of %s: %w", a.Name, err)
	}
	if err := os.WriteFile(a.Config(), []byte(a.Configuration(a.Place)), 0o600); err != nil {
		return fmt.Errorf("write the configuration of %s: %w", a.Name, err)
	}
	if err := s.startAddon(ctx, client, applier, a); err != nil {
		return err
	}
	if err := s.ready(ctx, a.Name, "http://"+a.Probe()+"/readyz"); err != nil {
		return err
	}
	if len(a.installation.Webhooks) > 0 {
		if err := s.untilAlive(ctx, "the webhooks of "+a.Name, serves(a.Webhook(), a.installation.Paths)); err != nil {
			return err
		}
		if err := applier.Apply(ctx, a.installation.Webhooks...); err != nil {
			return err
		}
	}
	return applier.Apply(ctx, a.installation.Objects...)
}

// startAddon starts a controller with the certificate of its webhooks. One that makes that itself enters who signed it into the definitions
// of the webhooks, and waits for them and for the files, which a kubelet would mount.
func (s *supervisor) startAddon(ctx context.Context, client kubernetes.Interface, applier *manifest.Applier, a runningAddon) error {
	if a.Secret == "" {
		cert, key := credential.Serving(s.dir)
		for name, from := range map[string]string{corev1.TLSCertKey: cert, corev1.TLSPrivateKeyKey: key} {
			data, err := os.ReadFile(from)
			if err != nil {
				return fmt.Errorf("read certificate: %w", err)
			}
			if err := a.writeCertificate(name, data); err != nil {
				return err
			}
		}
		return s.start(s.plan.addon(a.Controller))
	}
	if err := applier.Apply(ctx, a.installation.Webhooks...); err != nil {
		return err
	}
	if err := s.start(s.plan.addon(a.Controller)); err != nil {
		return err
	}
	return s.untilAlive(ctx, "the certificate of "+a.Name, func(ctx context.Context) error {
		secret, err := client.CoreV1().Secrets(a.Namespace).Get(ctx, a.Secret, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(secret.Data[corev1.TLSCertKey]) == 0 {
			return fmt.Errorf("there is none in Secret %s/%s", a.Namespace, a.Secret)
		}
		// The controller waits for the certificate, which is written last.
		return errors.Join(a.writeCertificate(corev1.TLSPrivateKeyKey, secret.Data[corev1.TLSPrivateKeyKey]),
			a.writeCertificate(corev1.TLSCertKey, secret.Data[corev1.TLSCertKey]))
	})
}

func (a runningAddon) writeCertificate(name string, data []byte) error {
	if err := os.WriteFile(filepath.Join(a.Certificates(), name), data, 0o600); err != nil {
		return fmt.Errorf("write the certificate of %s: %w", a.Name, err)
	}
	return nil
}

// serves is the condition that a server has all of some paths: controllers register them one after the other. What it is sent is no review, as
// it logs; any answer but that there is no such path will do. Whose certificate it has is for the API server to check.
func serves(address string, paths []string) func(context.Context) error {
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}}}
	return func(ctx context.Context) error {
		for _, path := range paths {
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+address+path, nil)
			if err != nil {
				return err
			}
			response, err := client.Do(request)
			if err != nil {
				return err
			}
			_ = response.Body.Close()
			if response.StatusCode == http.StatusNotFound {
				return fmt.Errorf("there is no %s", path)
			}
		}
		return nil
	}
}
