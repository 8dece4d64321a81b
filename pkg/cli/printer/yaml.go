package printer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"
)

// MarshalYAML is a value as YAML, as its JSON has it. Any character of a text may be there: those that YAML does not allow are escaped, as JSON allows them.
func MarshalYAML(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return jsonToYAML(text)
}

// jsonToYAML reads JSON as YAML, to write it.
func jsonToYAML(text []byte) ([]byte, error) {
	var b bytes.Buffer
	for _, r := range string(text) {
		if r >= 0x7f && r <= 0x9f || r == 0xfeff || r == 0xfffe || r == 0xffff { // encoding/json escapes other control characters itself
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return yaml.JSONToYAML(b.Bytes())
}

// yamlPrinter prints objects as YAML documents, as that of cli-runtime does, which fails for an object with a character that YAML does not allow.
type yamlPrinter struct {
	json    printers.JSONPrinter
	printed bool
}

// PrintObj implements printers.ResourcePrinter.
func (p *yamlPrinter) PrintObj(obj runtime.Object, out io.Writer) error {
	var text bytes.Buffer
	if err := p.json.PrintObj(obj, &text); err != nil {
		return err
	}
	document, err := jsonToYAML(text.Bytes())
	if err != nil {
		return err
	}
	if p.printed {
		document = append([]byte("---\n"), document...)
	}
	p.printed = true
	_, err = out.Write(document)
	return err
}
