package submit

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/localfile"
	"github.com/gangctl/gangctl/pkg/submit/redact"
	"github.com/gangctl/gangctl/pkg/submit/render"
)

// maxFiles is how much a ConfigMap holds, in bytes.
const maxFiles = 1 << 20

// shmPath is where programs expect shared memory.
const shmPath = "/dev/shm"

// mounts are the volumes of the flags.
func (p *podFlags) mounts(job string) ([]render.Mount, error) {
	m := &mounting{at: map[string]string{}}
	for i, text := range p.Data {
		if err := m.claim(fmt.Sprintf("data-%d", i), text); err != nil {
			return nil, err
		}
	}
	for i, text := range p.HostPaths {
		if err := m.hostPath(fmt.Sprintf("host-%d", i), text); err != nil {
			return nil, err
		}
	}
	for i, text := range p.ConfigFiles {
		if err := m.file(render.FilesName(job), fileKey(i, text), text); err != nil {
			return nil, err
		}
	}
	if p.Shm != nil {
		source := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: p.Shm}}
		if err := m.add("--shm", corev1.Volume{Name: "shm", VolumeSource: source}, corev1.VolumeMount{MountPath: shmPath}); err != nil {
			return nil, err
		}
	}
	return m.all, nil
}

type mounting struct {
	all []render.Mount
	// at are the flags by the paths that they mount something at.
	at map[string]string
}

func (m *mounting) add(flag string, volume corev1.Volume, mount corev1.VolumeMount) error {
	mount.MountPath = path.Clean(mount.MountPath)
	if other, taken := m.at[mount.MountPath]; taken {
		return failure.Usagef("%s and %s are both mounted at %s", other, flag, mount.MountPath)
	}
	m.at[mount.MountPath] = flag
	m.all = append(m.all, render.Mount{Volume: volume, Mount: mount})
	return nil
}

// claim reads CLAIM:/PATH[:ro][:SUBPATH].
func (m *mounting) claim(volume, text string) error {
	bad := func(why string) error {
		return failure.Usagef("--data %q: %s", text, why).WithHint("it is CLAIM:/PATH[:ro][:SUBPATH], for example: --data imagenet:/data:ro")
	}
	parts := strings.Split(text, ":")
	if len(parts) < 2 {
		return bad("there is no path")
	}
	if len(validation.IsDNS1123Subdomain(parts[0])) > 0 {
		return bad(fmt.Sprintf("%q is not the name of a volume claim", parts[0]))
	}
	if why := pathProblem(parts[1]); why != "" {
		return bad(why)
	}
	rest, readOnly := parts[2:], false
	if len(rest) > 0 && (rest[0] == "ro" || rest[0] == "rw") {
		readOnly, rest = rest[0] == "ro", rest[1:]
	}
	subPath := strings.Join(rest, ":")
	switch {
	case len(rest) > 1:
		return bad("it has too many parts")
	case len(rest) == 1 && (subPath == "" || path.IsAbs(subPath) || !filepath.IsLocal(subPath)):
		return bad(fmt.Sprintf("%q is not a path below the volume's own", subPath))
	}
	source := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: parts[0]}}
	return m.add("--data "+text, corev1.Volume{Name: volume, VolumeSource: source}, corev1.VolumeMount{MountPath: parts[1], ReadOnly: readOnly, SubPath: subPath})
}

// hostPath reads /HOST:/PATH[:ro].
func (m *mounting) hostPath(volume, text string) error {
	bad := func(why string) error {
		return failure.Usagef("--host-path %q: %s", text, why).WithHint("it is /HOST:/PATH[:ro], for example: --host-path /mnt/nvme:/scratch")
	}
	parts := strings.Split(text, ":")
	switch {
	case len(parts) < 2:
		return bad("there is no path in the member")
	case len(parts) > 3 || len(parts) == 3 && parts[2] != "ro" && parts[2] != "rw":
		return bad("after the second path only ro or rw may follow")
	}
	for _, p := range parts[:2] {
		if why := pathProblem(p); why != "" {
			return bad(why)
		}
	}
	source := corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: parts[0]}}
	return m.add("--host-path "+text, corev1.Volume{Name: volume, VolumeSource: source}, corev1.VolumeMount{MountPath: parts[1], ReadOnly: len(parts) == 3 && parts[2] == "ro"})
}

// file reads FILE:/PATH; the file itself is read elsewhere.
func (m *mounting) file(configMap, key, text string) error {
	_, at := cutFile(text)
	if why := pathProblem(at); why != "" {
		return failure.Usagef("--config-file %q: %s", redact.Flag("config-file", text), why).WithHint("it is FILE:/PATH, for example: --config-file train.yaml:/etc/train.yaml")
	}
	source := corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: configMap}}}
	return m.add("--config-file "+text, corev1.Volume{Name: "files", VolumeSource: source}, corev1.VolumeMount{MountPath: at, SubPath: key, ReadOnly: true})
}

// pathProblem is why something is not a path in a container; it is empty if it is one.
func pathProblem(p string) string {
	switch {
	case !path.IsAbs(p):
		return fmt.Sprintf("%q is not an absolute path", p)
	case path.Clean(p) == "/":
		return "the root cannot be mounted"
	case strings.Contains(p+"/", "/../"):
		return fmt.Sprintf("%q leads upwards", p)
	}
	return ""
}

// cutFile cuts FILE:/PATH at the last colon, as names of files may have one.
func cutFile(text string) (name, at string) {
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return text, ""
	}
	return text[:i], text[i+1:]
}

var notInKeys = regexp.MustCompile(`[^-._a-zA-Z0-9]`)

// fileKey is the key of the i-th file in the ConfigMap.
func fileKey(i int, text string) string {
	name, _ := cutFile(text)
	base := notInKeys.ReplaceAllString(filepath.Base(name), "_")
	return fmt.Sprintf("%d-%s", i, base[max(0, len(base)-maxNameLength):])
}

// readFile reads a local file. Its name is not in the error: it is in the flag.
func readFile(name string) ([]byte, error) {
	in, err := localfile.Open(name, nil)
	if named := (*fs.PathError)(nil); errors.As(err, &named) {
		return nil, named.Err
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return localfile.Bytes(in, maxFiles)
}

// readFiles reads the local files.
func (p *podFlags) readFiles() error {
	total := 0
	p.files = map[string][]byte{}
	for i, text := range p.ConfigFiles {
		name, _ := cutFile(text)
		content, err := readFile(name)
		if err != nil {
			return failure.Usagef("--config-file %q: %w", redact.Flag("config-file", text), err).
				WithHint("name a file of 1 MiB at most; put what is larger, or a directory, on a volume: --data CLAIM:/PATH")
		}
		if total += len(content); total > maxFiles {
			return failure.Usagef("--config-file: the files have more than %d bytes (1 MiB) together", maxFiles).WithHint("put them on a volume: --data CLAIM:/PATH")
		}
		p.files[fileKey(i, text)] = content
	}
	return nil
}
