// Package addon holds the controllers of other projects that a sandbox runs by `up --with`, as these release them: how each is started
// outside of a cluster, and what its project installs it with. They are built in modules of their own (test/kinds), so that the sandbox
// depends on none of them.
package addon

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/suggest"
)

// Build is the command that fills the folder of programs and manifests.
const Build = "make controllers"

// Controller is a controller of another project.
type Controller struct {
	// Name is what users choose it by. In a folder of controllers NAME is its program, and NAME.yaml what its project installs.
	Name string
	// Needs are the controllers without which it does nothing.
	Needs []string
	// Namespace and Account are its service account, as its project installs it with its rights.
	Namespace, Account string
	// Service and Secret are set of a controller that makes the certificate of its webhooks itself: for this Service, kept in this Secret.
	// The others get the certificate of the sandbox.
	Service, Secret string

	// configuration and args are its configuration file, if it has one, and its command line, with the places of Place in them.
	configuration string
	args          []string
}

// All returns the controllers, those that others need first.
func All() []Controller {
	return []Controller{
		{
			Name: "jobset", Namespace: "jobset-system", Account: "jobset-controller-manager",
			args: []string{"--config={config}", "--kubeconfig={kubeconfig}", "--metrics-bind-address=0", "--health-probe-bind-address={probe}"},
			configuration: `apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
webhook: {host: 127.0.0.1, port: {webhook}, certDir: {certificates}}
internalCertManagement: {enable: false}
leaderElection: {leaderElect: false}
`,
		},
		{
			// It makes JobSets. Its webhooks look for their certificate in the folder for temporary files, see Place.
			Name: "trainer", Needs: []string{"jobset"}, Namespace: "kubeflow-system", Account: "kubeflow-trainer-controller-manager",
			args: []string{"--config={config}", "--kubeconfig={kubeconfig}"},
			configuration: `apiVersion: config.trainer.kubeflow.org/v1alpha1
kind: Configuration
health: {healthProbeBindAddress: "{probe}"}
metrics: {bindAddress: "0"}
webhook: {host: 127.0.0.1, port: {webhook}}
certManagement: {enable: false}
leaderElection: {leaderElect: false}
`,
		},
		{
			Name: "lws", Namespace: "lws-system", Account: "lws-controller-manager",
			args: []string{"--config={config}", "--kubeconfig={kubeconfig}", "--metrics-bind-address=0", "--health-probe-bind-address={probe}"},
			configuration: `apiVersion: config.lws.x-k8s.io/v1alpha1
kind: Configuration
webhook: {host: 127.0.0.1, port: {webhook}, certDir: {certificates}}
internalCertManagement: {enable: false}
leaderElection: {leaderElect: false}
`,
		},
		{
			// As it is installed by default it has no webhooks.
			Name: "ray", Namespace: "default", Account: "kuberay-operator",
			args: []string{"--kubeconfig={kubeconfig}", "--metrics-addr=0", "--health-probe-bind-address={probe}", "--enable-leader-election=false"},
		},
		{
			// With a certificate of others it requires one for its metrics, in a folder of the system. So it makes its own, as by default.
			// Kinds that are not there are waited for.
			Name: "kueue", Namespace: "kueue-system", Account: "kueue-controller-manager",
			Service: "kueue-webhook-service", Secret: "kueue-webhook-server-cert",
			args: []string{"--config={config}", "--kubeconfig={kubeconfig}"},
			configuration: `apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
namespace: kueue-system
health: {healthProbeBindAddress: "{probe}"}
metrics: {bindAddress: "0"}
webhook: {host: 127.0.0.1, port: {webhook}, certDir: {certificates}}
internalCertManagement: {enable: true, webhookServiceName: kueue-webhook-service, webhookSecretName: kueue-webhook-server-cert}
leaderElection: {leaderElect: false}
featureGates: {VisibilityOnDemand: false, MultiKueue: false}
integrations:
  frameworks: [batch/job, kubeflow.org/tfjob, kubeflow.org/pytorchjob, jobset.x-k8s.io/jobset, trainer.kubeflow.org/trainjob,
    leaderworkerset.x-k8s.io/leaderworkerset, ray.io/raycluster, ray.io/rayjob, pod]
`,
		},
	}
}

// names are those of all controllers.
func names() (all []string) {
	for _, c := range All() {
		all = append(all, c.Name)
	}
	return all
}

// Names lists them, with commas between them.
func Names() string { return strings.Join(names(), ", ") }

// Known reports whether a name is that of a controller.
func Known(name string) bool { return slices.Contains(names(), name) }

// Chosen returns the controllers of a list of names with commas between them, as Select returned it.
func Chosen(list string) []Controller {
	chosen := strings.Split(list, ",")
	return slices.DeleteFunc(All(), func(c Controller) bool { return !slices.Contains(chosen, c.Name) })
}

// Select checks a list of names with commas between them, and returns it with what they need, each once, in the order of All.
func Select(list string) (string, error) {
	chosen := map[string]bool{}
	for _, name := range strings.Split(list, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		at := slices.Index(names(), name)
		if at < 0 {
			hint := "those that `" + Build + "` builds are " + Names()
			if near := suggest.Nearest(name, names()); near != "" {
				hint = "did you mean " + near + "? " + hint
			}
			return "", failure.Usagef("--with %q: there is no controller of that name", name).WithHint("%s", hint)
		}
		chosen[name] = true
		for _, need := range All()[at].Needs {
			chosen[need] = true
		}
	}
	return strings.Join(slices.DeleteFunc(names(), func(name string) bool { return !chosen[name] }), ","), nil
}

// program and manifest are where a controller is in a folder of controllers.
func (c Controller) program(folder string) string  { return filepath.Join(folder, c.Name) }
func (c Controller) manifest(folder string) string { return filepath.Join(folder, c.Name+".yaml") }

// Require refuses a folder that lacks what a controller is started with. What is in its manifest is read when it is.
func (c Controller) Require(folder string) error {
	program := c.program(folder)
	info, err := os.Stat(program)
	switch {
	case err != nil:
		return missing("program", c.Name, err)
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		return failure.Errorf("the controller %s: %s is no program", c.Name, program).WithHint("build it again: %s", Build)
	}
	if _, err := os.Stat(c.manifest(folder)); err != nil {
		return missing("manifest", c.Name, err)
	}
	return nil
}

func missing(what, name string, err error) error {
	return failure.Errorf("the %s of the controller %s: %w", what, name, err).
		WithHint("build the controllers: %s; or name the folder that has them with --controllers", Build)
}

// Place is where a controller runs.
type Place struct {
	// Home is a folder of its own, in which it finds its configuration and its certificate; Kubeconfig is its access to the API server.
	Home, Kubeconfig string
	// WebhookPort and ProbePort are what it listens on, on 127.0.0.1.
	WebhookPort, ProbePort int
}

// Config is the path of the configuration file.
func (p Place) Config() string { return filepath.Join(p.Home, "config.yaml") }

// Certificates is the folder of the webhooks' tls.crt and tls.key: the one where controller-runtime looks by default, below the folder for
// temporary files, since Trainer cannot be given another.
func (p Place) Certificates() string {
	return filepath.Join(p.Home, "k8s-webhook-server", "serving-certs")
}

// Probe and Webhook are the addresses of its probe and of its webhooks.
func (p Place) Probe() string   { return local(p.ProbePort) }
func (p Place) Webhook() string { return local(p.WebhookPort) }

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Configuration is the text of the configuration file; empty if the controller has none.
func (c Controller) Configuration(p Place) string {
	return strings.NewReplacer("{probe}", p.Probe(), "{webhook}", strconv.Itoa(p.WebhookPort), "{certificates}", strconv.Quote(p.Certificates())).Replace(c.configuration)
}

// Args is the command line of Run for a controller of a folder.
func (c Controller) Args(folder string, p Place) []string {
	places := strings.NewReplacer("{probe}", p.Probe(), "{config}", p.Config(), "{kubeconfig}", p.Kubeconfig)
	args := []string{p.Home, c.program(folder)}
	for _, arg := range c.args {
		args = append(args, places.Replace(arg))
	}
	return args
}
