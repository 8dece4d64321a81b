package submit

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gangctl/gangctl/pkg/cli/config"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/submit/choose"
	"github.com/gangctl/gangctl/pkg/submit/redact"
	"github.com/gangctl/gangctl/pkg/submit/resize"
	"github.com/gangctl/gangctl/pkg/submit/setpath"
)

// maxNameLength is that of a label value and of a service name (RFC 1035): the operator makes both from a member's name.
const maxNameLength = 63

// validate refuses what cannot work, before anything is sent. Only flags that were typed can contradict each other: a
// default from the configuration that does not apply is no mistake.
func (o *Options) validate(flags *pflag.FlagSet) error {
	for _, check := range []func(*pflag.FlagSet) error{
		o.validateKind, o.validateName, o.validatePlacement, o.validateRoles, o.validateImages, o.validateGPUs, o.validateGang, o.validatePod, o.validateMetadata, o.Submission.validate,
	} {
		if err := check(flags); err != nil {
			return err
		}
	}
	return nil
}

// checkedFlags are the flags that checkValues looks at.
var checkedFlags = []string{"scheduler", "queue", "priority-class", "gpu-resource", "env", "label", "annotation", "data", "host-path", "config-file", "env-from", "node-selector",
	"toleration", "affinity-node", "affinity-domain", "topology", "topology-preferred", "sync-git", "device", "rdma", "image-pull-secret", "service-account", "set", "template", "image", "sync-image", "tensorboard-image"}

// checkValues refuses a value that suits no job, whatever the other flags are: that of a setting, which is set without them.
func (o *Options) checkValues() error {
	never := func(string) bool { return false }
	for _, check := range []func() error{
		func() error { return o.validatePlacement(nil) },
		func() error { return refuseGPUResource(o.GPUResource) },
		func() error { _, err := o.environment(); return err },
		func() error { _, err := o.labels(); return err },
		func() error { _, err := o.annotations(); return err },
		func() error { _, err := o.mounts("job"); return err },
		func() error { _, err := o.envFrom(); return err },
		func() error { _, err := o.place(never); return err },
		func() error { _, err := o.code(never); return err },
		func() error { _, err := o.devices(o.GPUResource); return err },
		o.validateAccounts,
		o.checkSet,
		o.checkTemplate,
		o.refuseImages,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkSet refuses assignments that no job takes.
func (o *Options) checkSet() error {
	if err := setpath.Check(o.Set...); err != nil {
		return failure.Usagef("--set %w", err)
	}
	return nil
}

// checkTemplate refuses a template that there is not.
func (o *Options) checkTemplate() error {
	if o.Template == "" {
		return nil
	}
	_, err := findTemplate(o.ConfigPath, o.Template)
	return err
}

// refuseEmpty refuses an empty value that was typed: an unset variable of a script, rather than a default.
// It must see the flags before defaults fill them in.
func refuseEmpty(flags *pflag.FlagSet) error {
	for _, name := range []string{"name", "working-dir", "scheduler", "priority-class", "queue", "service-account", "topology", "topology-preferred", "sync-git", "sync-image", "tensorboard",
		"tensorboard-image", "affinity-domain", "template"} {
		if flag := flags.Lookup(name); flag.Changed && strings.TrimSpace(flag.Value.String()) == "" {
			return failure.Usagef("--%s is empty", name).WithHint("give it a value, or leave it out")
		}
	}
	return nil
}

// refuseBytes refuses arguments that are not valid UTF-8: objects cannot hold them, and would have something else in their place.
func refuseBytes(flags *pflag.FlagSet, args []string) error {
	refuse := func(what, text string) error {
		return failure.Usagef("%s %q: is not valid UTF-8", what, text).
			WithHint("put the bytes into a Secret or a file that members read")
	}
	shown := redact.Args(args)
	for i, text := range args {
		if !utf8.ValidString(text) {
			return refuse("argument", shown[i])
		}
	}
	var err error
	flags.VisitAll(func(flag *pflag.Flag) {
		texts := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			texts = list.GetSlice()
		}
		for _, text := range texts {
			if err == nil && !utf8.ValidString(text) {
				err = refuse("--"+flag.Name, redact.Flag(flag.Name, text))
			}
		}
	})
	return err
}

// validatePlacement checks names that the API server would refuse only when the operator makes the pods.
func (o *Options) validatePlacement(*pflag.FlagSet) error {
	if err := validateObjectName("scheduler", o.Scheduler); err != nil {
		return err
	}
	if err := validateObjectName("queue", o.Queue); err != nil {
		return err
	}
	return validateObjectName("priority-class", o.PriorityClass)
}

// validateObjectName checks the value of a flag that names something; it may be empty.
func validateObjectName(flag, value string) error {
	if value == "" || len(validation.IsDNS1123Subdomain(value)) == 0 {
		return nil
	}
	return failure.Usagef("--%s %q: must hold only lower-case letters, digits, '-' and '.', start and end with a letter or digit, "+
		"and have at most %d characters", flag, value, validation.DNS1123SubdomainMaxLength)
}

func (o *Options) validateName(*pflag.FlagSet) error {
	var roles []gang.Role
	for _, r := range o.jobRoles() {
		roles = append(roles, gang.Role{Name: r.Name, Replicas: r.Replicas, PartSize: r.Replicas})
	}
	problem, hint := nameProblem(o.kind.reader, o.Name, roles)
	if problem == "" {
		return nil
	}
	return failure.Usagef("%s", problem).WithHint("%s", hint)
}

// nameProblem is the fault of the name of a job with these roles; it is empty if nothing is.
func nameProblem(reader gang.JobReader, name string, roles []gang.Role) (problem, hint string) {
	if problems := validation.IsDNS1035Label(name); len(problems) > 0 {
		return fmt.Sprintf("name %q: must start with a lower-case letter, hold only lower-case letters, digits and '-', "+
			"end in a letter or digit, and have at most %d characters", name, maxNameLength), "for example: my-job-1"
	}
	for _, role := range slices.SortedFunc(slices.Values(roles), func(a, b gang.Role) int { return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) }) {
		if role.Replicas <= 0 {
			continue
		}
		what, last := longestName(reader, name, role)
		if over := len(last) - maxNameLength; over > 0 {
			return fmt.Sprintf("name %q is too long: %s %s would have %d characters, at most %d are allowed",
				name, what, last, len(last), maxNameLength), fmt.Sprintf("shorten the name by %d characters or more", over)
		}
	}
	return "", ""
}

// longestName is the longest that is made from the name of a job for a role, and what has it: a member's pod or, of a Job, whose pods have random
// names, its host.
func longestName(reader gang.JobReader, job string, role gang.Role) (what, name string) {
	switch {
	case reader.LongestName != nil:
		return "what JobSet makes,", reader.LongestName(job, role)
	case reader.PodName == nil:
		return "the pod and service", fmt.Sprintf("%s-%d", job, role.Replicas-1)
	}
	return "the pod and service", reader.PodName(job, gang.RoleIndex{Role: strings.ToLower(role.Name), Index: int(role.Replicas) - 1})
}

// validateKind checks what only one kind has.
func (o *Options) validateKind(flags *pflag.FlagSet) error {
	if o.kind.check == nil {
		return nil
	}
	return o.kind.check(o, flags.Changed)
}

func (o *Options) validateRoles(flags *pflag.FlagSet) error {
	for _, r := range o.Roles {
		if r.Replicas > 0 {
			continue
		}
		for _, suffix := range append(resize.FlagRequests(), "image") {
			if name := r.flag() + "-" + suffix; flags.Changed(name) {
				return failure.Usagef("--%s has no effect: the job has no %s (--%s is 0)", name, r.flag(), r.count).
					WithHint("add --%s 1, or leave out --%s", r.count, name)
			}
		}
	}
	return nil
}

func (o *Options) validateImages(*pflag.FlagSet) error {
	var missing []string
	for _, r := range o.Roles {
		if r.Replicas > 0 && strings.TrimSpace(r.Image) == "" {
			missing = append(missing, r.flag())
		}
	}
	if len(missing) == 0 {
		return o.refuseImages()
	}
	return failure.Usagef("no image for: %s", strings.Join(missing, ", ")).
		WithHint("set one with --image IMAGE, with GANGCTL_IMAGE, or with `image: IMAGE` in %s (also in a profile)", config.Name(o.ConfigPath))
}

// refuseImages refuses names of images that no kubelet can pull.
func (o *Options) refuseImages() error {
	for _, check := range o.images() {
		if err := cmdutil.CheckImage(check.flag, check.name); err != nil {
			return err
		}
	}
	return nil
}

// typedImage is the name of an image, and the flag that has it.
type typedImage struct{ flag, name string }

// images are those of all flags.
func (o *Options) images() []typedImage {
	all := []typedImage{{"image", o.Image}, {"sync-image", o.SyncImage}, {"tensorboard-image", o.TensorBoardImage}}
	for _, r := range o.Roles {
		if r.Image != o.Image {
			all = append(all, typedImage{r.flag() + "-image", r.Image})
		}
	}
	return all
}

func (o *Options) validateGPUs(flags *pflag.FlagSet) error {
	var gpus int64
	for _, r := range o.Roles {
		gpus += r.GPUs * int64(r.Replicas)
	}
	return validateGPUResource(flags, o.GPUResource, gpus > 0)
}

// refuseGPUResource refuses a --gpu-resource that cannot be one.
func refuseGPUResource(resource string) error {
	if request.IsExtended(corev1.ResourceName(resource)) {
		return nil
	}
	return failure.Usagef("--gpu-resource %q: must be an extended resource, DOMAIN/NAME", resource).WithHint("for example: --gpu-resource amd.com/gpu")
}

// validateGPUResource refuses a --gpu-resource that cannot be one, or that no member requests.
func validateGPUResource(flags *pflag.FlagSet, resource string, requested bool) error {
	if err := refuseGPUResource(resource); err != nil {
		return err
	}
	if !requested && flags.Changed("gpu-resource") {
		return failure.Usagef("--gpu-resource has no effect: no member requests GPUs").WithHint("add --gpus N, or leave out --gpu-resource")
	}
	return nil
}

func (o *Options) validateGang(flags *pflag.FlagSet) error {
	if o.Dialect == gang.None && flags.Changed("min-available") {
		return failure.Usagef("--min-available has no effect with --dialect none: its members are scheduled one by one").
			WithHint("leave out one of the two flags")
	}
	if members := o.members(); o.MinAvailable > members {
		return failure.Usagef("--min-available %d: the job has %s; must be from 1 to %d", o.MinAvailable, o.memberCounts(), members)
	}
	return nil
}

func (o *Options) validateMetadata(*pflag.FlagSet) error {
	_, err := o.spec("", choose.Decision{})
	return err
}

// memberCounts reads like `4 members (1 ps, 3 worker)`.
func (o *Options) memberCounts() string {
	var parts []string
	for _, r := range o.Roles {
		if r.Replicas > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", r.Replicas, r.flag()))
		}
	}
	plural := "s"
	if o.members() == 1 {
		plural = ""
	}
	return fmt.Sprintf("%d member%s (%s)", o.members(), plural, strings.Join(parts, ", "))
}
