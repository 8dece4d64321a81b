package submit

import (
	"net/url"
	"slices"
	"strings"
	"time"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/submit/redact"
	"github.com/gangctl/gangctl/pkg/submit/render"
)

// apply sets the flags' values in a spec; trains are the roles that --gpus is for.
func (p *podFlags) apply(s *render.Spec, trains []string, changed func(string) bool) error {
	var err error
	if s.Pod.Mounts, err = p.mounts(s.Name); err != nil {
		return err
	}
	if s.Pod.EnvFrom, err = p.envFrom(); err != nil {
		return err
	}
	if s.Pod.Placement, err = p.place(changed); err != nil {
		return err
	}
	if s.Pod.Code, err = p.code(changed); err != nil {
		return err
	}
	if s.TensorBoard, err = p.tensorBoard(s, changed); err != nil {
		return err
	}
	s.Pod.PullSecrets, s.Pod.PullPolicy, s.Pod.ServiceAccount = p.PullSecrets, p.PullPolicy, p.ServiceAccount
	s.Pod.HostNetwork, s.Gang.Topology.Required, s.Files = p.HostNetwork, p.Topology, p.files
	s.Gang.Topology.Preferred = p.preferredDomains()
	s.Lifetime = p.lifetime()
	if p.Shell {
		s.Pod.Command = []string{"sh", "-c", strings.Join(s.Pod.Command, " ")}
	}
	return p.limits(s, trains)
}

// limits are those of CPU and memory, above what the members of each role request.
func (p *podFlags) limits(s *render.Spec, trains []string) error {
	devices, err := p.devices(string(s.Pod.GPUResource))
	if err != nil {
		return err
	}
	for i := range s.Roles {
		r := &s.Roles[i]
		if slices.Contains(trains, r.Name) && len(devices) > 0 {
			r.Devices, r.LockMemory = devices, p.RDMA != ""
		}
		for _, l := range []struct {
			flag    string
			request *resource.Quantity
			limit   *resource.Quantity
			name    corev1.ResourceName
		}{{"cpu", r.CPU, p.LimitCPU, corev1.ResourceCPU}, {"memory", r.Memory, p.LimitMemory, corev1.ResourceMemory}} {
			if l.limit == nil || r.Replicas == 0 {
				continue
			}
			if l.request != nil && l.limit.Cmp(*l.request) < 0 {
				return failure.Usagef("--limit-%s %s: less than each %s requests, %s", l.flag, l.limit, strings.ToLower(r.Name), l.request)
			}
			if r.Limits == nil {
				r.Limits = corev1.ResourceList{}
			}
			r.Limits[l.name] = *l.limit
		}
	}
	return nil
}

// envFrom reads secret/NAME and configmap/NAME.
func (p *podFlags) envFrom() ([]corev1.EnvFromSource, error) {
	var all []corev1.EnvFromSource
	for i, text := range p.EnvFrom {
		kind, name, _ := strings.Cut(text, "/")
		ref := corev1.LocalObjectReference{Name: name}
		switch {
		case len(validation.IsDNS1123Subdomain(name)) > 0 || kind != "secret" && kind != "configmap":
			return nil, failure.Usagef("--env-from %q: must be secret/NAME or configmap/NAME", text)
		case slices.Contains(p.EnvFrom[:i], text):
			return nil, failure.Usagef("--env-from %s is given twice", text)
		case kind == "secret":
			all = append(all, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref}})
		default:
			all = append(all, corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref}})
		}
	}
	return all, nil
}

// code reads URL[@REF]. The @ of a user comes before the path of the repository, the one of a ref in it.
func (p *podFlags) code(changed func(string) bool) (*render.Code, error) {
	if p.SyncGit == "" {
		if changed("sync-image") {
			return nil, failure.Usagef("--sync-image has no effect without --sync-git")
		}
		return nil, nil //nolint:nilnil // no code is no mistake
	}
	hint := "for example: --sync-git https://github.com/example/train@v1.2"
	head, rest := "", p.SyncGit
	if i := strings.Index(rest, "://"); i >= 0 {
		head, rest = rest[:i+3], rest[i+3:]
	}
	before := "/:" // git@host:repository has no scheme
	if head != "" {
		before = "/" // a colon is that of a port, or of a password
	}
	slash := strings.IndexAny(rest, before)
	if slash <= 0 || strings.ContainsAny(p.SyncGit, " \t\n") || strings.HasPrefix(p.SyncGit, "-") {
		return nil, failure.Usagef("--sync-git %q: must be the URL of a repository, and @REF if it is not the default branch", redact.Flag("sync-git", p.SyncGit)).WithHint("%s", hint)
	}
	repository, ref, hasRef := strings.Cut(rest[slash:], "@")
	if hasRef && ref == "" || strings.HasPrefix(ref, "-") {
		return nil, failure.Usagef("--sync-git %q: %q is not a branch, tag or commit", redact.Flag("sync-git", p.SyncGit), ref).WithHint("%s", hint)
	}
	code := &render.Code{URL: head + rest[:slash] + repository, Ref: ref, Image: p.SyncImage}
	if u, err := url.Parse(code.URL); err == nil && u.User != nil {
		if _, has := u.User.Password(); has {
			return nil, failure.Usagef("--sync-git: the URL holds a password, which everybody could read who may read the job").
				WithHint("keep it in a Secret with the keys GITSYNC_USERNAME and GITSYNC_PASSWORD: --env-from secret/NAME")
		}
	}
	return code, nil
}

// tensorBoard refuses a directory that its pod could not see.
func (p *podFlags) tensorBoard(s *render.Spec, changed func(string) bool) (*render.TensorBoard, error) {
	dir := p.TensorBoard
	if dir == "" {
		if changed("tensorboard-image") {
			return nil, failure.Usagef("--tensorboard-image has no effect without --tensorboard")
		}
		return nil, nil //nolint:nilnil // none is no mistake
	}
	shared := slices.ContainsFunc(s.Pod.Mounts, func(m render.Mount) bool {
		return m.Volume.PersistentVolumeClaim != nil && (dir == m.Mount.MountPath || strings.HasPrefix(dir, m.Mount.MountPath+"/"))
	})
	if !shared && !strings.Contains(dir, "://") {
		return nil, failure.Usagef("--tensorboard %s: TensorBoard runs in a pod of its own, and no volume claim is mounted there", dir).
			WithHint("add --data CLAIM:%s, or give the URL of a store", dir)
	}
	if name := render.TensorBoardName(s.Name); len(name) > maxNameLength {
		return nil, failure.Usagef("--tensorboard: the service %s would have %d characters, at most %d are allowed", name, len(name), maxNameLength)
	}
	image := p.TensorBoardImage
	for _, r := range s.Roles {
		if image == "" && r.Replicas > 0 {
			image = r.Image
		}
	}
	return &render.TensorBoard{LogDir: dir, Image: image}, nil
}

func (p *podFlags) lifetime() render.Lifetime {
	l := render.Lifetime{Retries: p.Retries.p}
	if d := p.TimeLimit.p; d != nil {
		n := int64(*d / time.Second)
		l.Limit = &n
	}
	if d := p.TTL.p; d != nil {
		n := int32(*d / time.Second) //nolint:gosec // the flag has a range
		l.TTL = &n
	}
	return l
}

// validatePod refuses flags that have no effect, or name nothing.
func (o *Options) validatePod(flags *pflag.FlagSet) error {
	if err := o.validateAccounts(); err != nil {
		return err
	}
	switch {
	case o.Shell && len(o.Command) == 0:
		return failure.Usagef("--shell has no effect without a command").WithHint("add one after --, for example: --shell -- 'python train.py > /logs/out'")
	case o.Retries.p != nil && o.kind.cleans && o.RestartPolicy == kubeflowv1.RestartPolicyExitCode && *o.Retries.p > 0:
		return failure.Usagef("--retries has no effect with --restart-policy ExitCode: its members are created again, and the operator counts restarts in place")
	case o.Retries.p != nil && o.kind.cleans && o.RestartPolicy == kubeflowv1.RestartPolicyNever && *o.Retries.p > 0:
		return failure.Usagef("--retries has no effect with --restart-policy Never: the first member that fails ends the job")
	case len(o.ConfigFiles) > 0 && flags.Changed("config-file"):
		return o.readFiles()
	}
	return nil
}

// validateAccounts checks the names of what pods use.
func (p *podFlags) validateAccounts() error {
	for _, name := range p.PullSecrets {
		if err := validateObjectName("image-pull-secret", name); err != nil || name == "" {
			return emptyOr(err, "image-pull-secret")
		}
	}
	return validateObjectName("service-account", p.ServiceAccount)
}

func emptyOr(err error, flag string) error {
	if err != nil {
		return err
	}
	return failure.Usagef("--%s is empty", flag).WithHint("give it a value, or leave it out")
}
