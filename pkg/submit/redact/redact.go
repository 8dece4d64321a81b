// Package redact takes out of objects and command lines what must not go where their owner did not send it: values of environment
// variables, what Secrets and ConfigMaps hold, copies of manifests in annotations, and credentials in arguments. Everything that
// gangctl saves, shows or passes on goes through it. It is pure.
package redact

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/submit/provenance"
)

// Hidden stands for a value that is left out.
const Hidden = "…"

// longAnnotation is how long, in bytes, an annotation of another program may be to be kept: longer ones are copies of something.
const longAnnotation = 1 << 10

// Object removes from an object, as JSON has it, what is secret. It changes what it is given.
func Object(object map[string]any) {
	kind, _ := object["kind"].(string)
	switch {
	case kind == "ConfigMap":
		delete(object, "data")
		delete(object, "binaryData")
	case strings.Contains(kind, "Secret"): // a Secret, and what others make Secrets of
		for field := range object {
			if field != "apiVersion" && field != "kind" && field != "metadata" {
				delete(object, field)
			}
		}
	}
	fields(object)
}

// fields redacts wherever it is: pod templates occur in many kinds.
func fields(value any) {
	switch v := value.(type) {
	case map[string]any:
		delete(v, "managedFields")
		for key, child := range v {
			v[key] = field(key, child)
		}
		if _, named := v["name"]; named && value != nil {
			if _, literal := v["value"].(string); literal { // a variable, or the header of a probe
				delete(v, "value")
			}
		}
	case []any:
		for _, child := range v {
			fields(child)
		}
	}
}

// field is one of a map, without what is secret.
func field(key string, value any) any {
	switch v := value.(type) {
	case string:
		if key == "message" {
			return Text(v)
		}
	case []any:
		if key == "args" || key == "command" {
			return arguments(v)
		}
		fields(v)
	case map[string]any:
		switch key {
		case "annotations":
			annotations(v)
		case "env", "envs", "environment", "volumeAttributes": // of kinds that have a map of them
			for name, child := range v {
				if _, literal := child.(string); literal {
					v[name] = Hidden
				}
			}
			fields(v)
		default:
			fields(v)
		}
	}
	return value
}

// annotations drops copies of manifests, whichever tool wrote them, and redacts the rest.
func annotations(all map[string]any) {
	for key, value := range all {
		text, _ := value.(string)
		name := key[strings.LastIndexByte(key, '/')+1:]
		switch {
		case key == provenance.CommandAnnotation:
			if all[key] = CommandLine(text); all[key] == "" {
				delete(all, key)
			}
		case strings.HasPrefix(key, "gangctl.dev/"):
			all[key] = Text(text)
		case len(text) > longAnnotation, name == "original", strings.Contains(name, "applied"), structured(text):
			delete(all, key)
		case secretName.MatchString(name):
			all[key] = Hidden
		default:
			all[key] = Text(text)
		}
	}
}

// structured reports whether a text is an object or a list of JSON, or begins as one of YAML.
func structured(text string) bool {
	text = strings.TrimSpace(text)
	return (strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")) && json.Valid([]byte(text)) || strings.Contains(text, "apiVersion:")
}

func arguments(list []any) []any {
	texts := make([]string, len(list))
	for i, arg := range list {
		texts[i], _ = arg.(string)
	}
	redacted := make([]any, len(list))
	for i, arg := range Args(texts) {
		redacted[i] = arg
	}
	return redacted
}

// credential matches the last part of names that hold one: HF_TOKEN, --api-key, aws_secret_access_key. "tokenizer" and "max-tokens" are
// none.
const credential = `(?i:token|passwo?r?d|passphrase|secret|credentials?|api[-_]?key|access[-_]?key|private[-_]?key)`

var (
	secretName = regexp.MustCompile(credential + `$`)
	secretFlag = regexp.MustCompile(`^--?[\w.-]*` + credential + `$`)
	assigned   = regexp.MustCompile(`([\w.-]*` + credential + `["']?\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s,;&]+)`)
	following  = regexp.MustCompile(`(--?[\w.-]*` + credential + `\s+)("[^"]*"|'[^']*'|[^\s-][^\s,;&]*)`)
	userInfo   = regexp.MustCompile(`(\w://)[^/\s@]+@`)
)

// Text is the text of a program or a user, without what reads like a credential: NAME_TOKEN=…, --password …, https://…@host.
func Text(text string) string {
	if mayNameCredential(text) {
		text = withoutAssigned(text)
		text = following.ReplaceAllString(text, "${1}"+Hidden)
	}
	if strings.Contains(text, "://") {
		text = userInfo.ReplaceAllString(text, "${1}"+Hidden+"@")
	}
	return text
}

// withoutAssigned hides what follows a name and an equals sign or a colon.
func withoutAssigned(text string) string {
	var b strings.Builder
	done := 0
	for _, at := range assigned.FindAllStringSubmatchIndex(text, -1) {
		if inSentence(text[:at[3]]) && !random(text[at[4]:at[5]]) {
			continue
		}
		b.WriteString(text[done:at[3]] + Hidden)
		done = at[1]
	}
	return b.String() + text[done:]
}

// inSentence reports whether a text that ends in a name and a colon is the beginning of a sentence, as container runtimes and kubelets report it: failed to fetch oauth token: unexpected
// status from GET request to https://registry/token: 401.
func inSentence(text string) bool {
	before, named := strings.CutSuffix(text, "token: ")
	if n := len(before); named && n > 1 && before[n-1] == ' ' {
		return before[n-2] >= 'a' && before[n-2] <= 'z'
	}
	return named && strings.HasSuffix(before, "/")
}

// random reports whether a text reads like a token rather than like a word: it is long, or has digits among letters.
func random(text string) bool {
	const long = 32
	isLetter := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }
	return len(text) >= long || strings.ContainsAny(text, "0123456789") && strings.ContainsFunc(text, isLetter)
}

// mayNameCredential reports whether a text may have one of the names that hold credentials. Most have none, and that is found sooner than by the
// expressions: answers are redacted text by text.
func mayNameCredential(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf { // letters that others fold to
			return true
		}
	}
	text = strings.ToLower(text)
	return slices.ContainsFunc([]string{"token", "pass", "secret", "credential", "key"}, func(part string) bool { return strings.Contains(text, part) })
}

// Args are the arguments of a program, without what reads like a credential. They are what the owner of a job chose: a credential
// under another name cannot be recognized.
func Args(argv []string) []string {
	redacted := slices.Clone(argv)
	for i, arg := range argv {
		if i > 0 && secretFlag.MatchString(argv[i-1]) && !strings.HasPrefix(arg, "-") {
			redacted[i] = Hidden
			continue
		}
		redacted[i] = Text(arg)
	}
	return redacted
}

// CommandLine is a command line of `gangctl submit`, quoted again and on one line, without what is secret. It is empty for any other: whoever may
// write the job may have written it, and it is shown to be pasted. So it has no names of files either: they would be read on the machine of whoever
// pastes it, and a kubeconfig names programs that are run there.
func CommandLine(line string) string {
	argv := provenance.Argv(line)
	if argv == nil {
		return ""
	}
	end := slices.Index(argv, "--")
	if end < 0 {
		end = len(argv)
	}
	own := argv[:end:end]
	for i, arg := range own {
		name, value, joined := strings.Cut(arg, "=")
		switch {
		case joined && strings.HasPrefix(name, "--"):
			own[i] = name + "=" + pasted(name[2:], value)
		case i > 0 && strings.HasPrefix(own[i-1], "--"):
			own[i] = pasted(own[i-1][2:], arg)
		case i > 0 && (own[i-1] == "-f" || own[i-1] == "-s"): // short for --filename and --server
			own[i] = Hidden
		case len(arg) > 2 && (strings.HasPrefix(arg, "-f") || strings.HasPrefix(arg, "-s")):
			own[i] = arg[:2] + "=" + Hidden
		}
	}
	return shell.OneLine(append(Args(own), Args(argv[end:])...)...)
}

// pasted is Flag for a line that is shown to be pasted. A template that is a name is one of gangctl's own.
func pasted(name, value string) string {
	if provenance.OfThisMachine(name) && (name != "template" || strings.ContainsAny(value, "/.~")) {
		return Hidden
	}
	return Flag(name, value)
}

// Flag is the value of a flag of submit without what is secret: the values of variables, of other fields that are called value, and
// what reads like a credential anywhere, such as the user of a URL.
func Flag(name, value string) string {
	key, assigned, assigns := strings.Cut(value, "=")
	switch name {
	case "env":
		if assigns {
			return key + "=" + Hidden
		}
	case "set":
		if assigns { // an equals sign in the path has a backslash before it, and is then taken for the end: more is hidden
			return key + "=" + Field(key, assigned)
		}
	case "annotation", "label":
		if assigns && secretName.MatchString(key) {
			return key + "=" + Hidden
		}
	}
	return Text(value)
}

// variables matches paths into maps of variables and the like, and to whole ones.
var variables = regexp.MustCompile(`(^|\.)(envs?|environment|volumeAttributes)($|[.\[])`)

// Field is the value of a field, as a text or in JSON, without what is secret: all of it, where something is. The path is that of the
// field, a.b[0].c.
func Field(path, value string) string {
	switch text := strings.TrimSpace(value); {
	case strings.HasSuffix(path, ".value"), strings.HasSuffix(path, `\`), secretName.MatchString(path):
		return Hidden
	case !variables.MatchString(path) && !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "["):
		return Text(value)
	case strings.HasSuffix(path, ".name"), strings.HasSuffix(path, ".key"), strings.HasSuffix(path, ".optional"):
		return Text(value) // of a variable that is read from elsewhere
	}
	if variables.MatchString(path) && strings.Contains(value, `"value"`) {
		return Hidden // of whatever type it is
	}
	last := path[strings.LastIndexByte(path, '.')+1:]
	if strings.HasSuffix(last, "]") {
		last = "" // an item is not what the list is
	}
	var content, redacted any
	if json.Unmarshal([]byte(value), &content) != nil || json.Unmarshal([]byte(value), &redacted) != nil {
		return Hidden // in what cannot be read there may be anything
	}
	if redacted = field(last, redacted); !reflect.DeepEqual(content, redacted) {
		return Hidden
	}
	return value
}

// Hides reports whether something is left out of the value of a flag. One that has the sign itself is taken for such a value.
func Hides(value string) bool { return strings.Contains(value, Hidden) }
