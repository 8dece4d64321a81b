package install

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

const (
	// defaultRegistry is where released images are.
	defaultRegistry = "ghcr.io/gangctl"
	// imageName is the image's name in any registry.
	imageName = "gangctl"
	// monitoring is the default namespace of Prometheus.
	monitoring = "monitoring"
	// SettingsAnnotation is on the Deployment: the Settings as JSON, so that an upgrade keeps the settings of an install.
	SettingsAnnotation = "gangctl.dev/install-settings"
	// highAvailability is how many replicas --ha stands for: one schedules, one waits.
	highAvailability = 2
)

// Settings are the settings of an installation of the scheduler. Its JSON form is kept on the cluster; fields are only added.
type Settings struct {
	Registry    string   `json:"registry,omitempty"`
	Image       string   `json:"image,omitempty"`
	PullSecrets []string `json:"imagePullSecrets,omitempty"`
	Replicas    int32    `json:"replicas"`
	Serve       []string `json:"serve,omitempty"`
	Tolerations []string `json:"tolerations,omitempty"`
	CPU         string   `json:"cpu,omitempty"`
	Memory      string   `json:"memory,omitempty"`
	TakeBack    bool     `json:"takeBack"`
	// MetricsFrom may be empty on purpose, and is written then, too.
	MetricsFrom []string `json:"metricsFrom"`
}

// release matches the versions of builds of which there is an image: no pseudo-version, no modified tree.
var (
	release = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)
	pseudo  = regexp.MustCompile(`[-.]\d{14}-[0-9a-f]{12}$|-\d+-g[0-9a-f]+$|dirty`)
)

func isRelease(v string) bool { return release.MatchString(v) && !pseudo.MatchString(v) }

// image is the full name of the image for a version of gangctl.
func (s Settings) image(of string) (string, error) {
	if s.Image != "" {
		return s.Image, nil
	}
	if !isRelease(of) {
		return "", failure.Errorf("there is no image of this gangctl, because its version is %s, which is no release", of).
			WithHint("use a release of gangctl, or name the image to run: gangctl install scheduler --image IMAGE")
	}
	return strings.TrimSuffix(s.Registry, "/") + "/" + imageName + ":" + of, nil
}

// validate returns what is wrong with a setting, naming its flag.
func (s Settings) validate() error {
	for _, given := range []struct{ flag, name, such string }{
		{"registry", s.Registry, "registry.example.com/team"}, {"image", s.Image, "registry.example.com/team/" + imageName + ":v1.2.3"},
	} {
		if strings.ContainsAny(given.name, " \t\n\"") || strings.Contains(given.name, "://") {
			return failure.Usagef("--%s %q: must be a name such as %s, without scheme or blanks", given.flag, given.name, given.such)
		}
	}
	if err := cmdutil.CheckImage("image", s.Image); err != nil {
		return err
	}
	for _, name := range s.PullSecrets {
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			return failure.Usagef("--image-pull-secret %q: %s", name, problems[0])
		}
	}
	for _, name := range s.MetricsFrom {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return failure.Usagef("--metrics-from %q: %s", name, problems[0])
		}
	}
	if _, err := s.tolerations(); err != nil {
		return err
	}
	for i, name := range s.Serve {
		problems := validation.IsDNS1123Subdomain(name)
		switch {
		case len(problems) > 0:
			return failure.Usagef("--serve %q: %s", name, problems[0])
		case name == "default-scheduler":
			return failure.Usagef("--serve %s: kube-scheduler answers to that name, and two schedulers of one name bind the same pods", name)
		case name == install.SchedulerInstance:
			return failure.Usagef("--serve %s: it answers to that name anyway", name)
		case slices.Contains(s.Serve[:i], name):
			return failure.Usagef("--serve %s: given twice", name)
		}
	}
	return nil
}

// differing are the flags for what is different in settings than in others, as they would be typed.
func differing(s, other Settings) []string {
	text := func(s Settings) [][2]string {
		list := func(items []string) string { return strings.Join(items, ",") }
		return [][2]string{
			{"registry", s.Registry}, {"image", s.Image}, {"image-pull-secret", list(s.PullSecrets)}, {"replicas", fmt.Sprint(s.Replicas)}, {"serve", list(s.Serve)},
			{"cpu", s.CPU}, {"memory", s.Memory}, {"toleration", list(s.Tolerations)}, {"take-back", fmt.Sprint(s.TakeBack)}, {"metrics-from", list(s.MetricsFrom)},
		}
	}
	var flags []string
	was := text(other)
	for i, flag := range text(s) {
		if flag != was[i] {
			flags = append(flags, "--"+flag[0]+"="+flag[1])
		}
	}
	return flags
}

// names are all scheduler names that the installation answers to.
func (s Settings) names() []string { return append([]string{install.SchedulerInstance}, s.Serve...) }

// tolerations are the taints of nodes that the pods of the scheduler tolerate.
func (s Settings) tolerations() ([]corev1.Toleration, error) {
	return cmdutil.Tolerations(s.Tolerations, "node-role.kubernetes.io/infra=true:NoSchedule")
}

// Scheduler is the installation that the settings describe.
func (s Settings) Scheduler(namespace, gangctlVersion string) (install.Scheduler, error) {
	image, err := s.image(gangctlVersion)
	if err != nil {
		return install.Scheduler{}, err
	}
	kept, err := json.Marshal(s)
	if err != nil {
		return install.Scheduler{}, fmt.Errorf("write settings: %w", err)
	}
	tolerations, err := s.tolerations()
	if err != nil {
		return install.Scheduler{}, err
	}
	return install.Scheduler{
		Version: gangctlVersion, Namespace: namespace, Image: image, PullSecrets: s.PullSecrets, Replicas: s.Replicas, Serve: s.Serve,
		CPU: quantity(s.CPU), Memory: quantity(s.Memory), TakeBack: s.TakeBack, Tolerations: tolerations, MetricsFrom: s.MetricsFrom,
		Annotations: map[string]string{SettingsAnnotation: string(kept)},
	}, nil
}

// quantity reads what was validated when it was written; nil if there is none.
func quantity(text string) *resource.Quantity {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return nil
	}
	return &q
}

// olderThan reports whether one version is older than another, and whether that can be determined at all.
func olderThan(a, b string) (older, known bool) {
	if !isRelease(a) || !isRelease(b) {
		return false, false
	}
	va, errA := version.ParseSemantic(a)
	vb, errB := version.ParseSemantic(b)
	if errA != nil || errB != nil {
		return false, false
	}
	return va.LessThan(vb), true
}

// Version is how a version stands in the label of an object.
func Version(of string) string { return install.LabelValue(of) }
