package templates

import (
	"embed"
	"path"
	"strings"
)

//go:embed job/*.yaml
var jobs embed.FS

// Jobs are the templates that are built in, by name: jobs in YAML, which begin with a comment on their purpose.
func Jobs() map[string][]byte {
	entries, err := jobs.ReadDir("job")
	if err != nil {
		panic(err) // the directory is in the program
	}
	all := map[string][]byte{}
	for _, e := range entries {
		text, err := jobs.ReadFile(path.Join("job", e.Name()))
		if err != nil {
			panic(err)
		}
		all[strings.TrimSuffix(e.Name(), ".yaml")] = text
	}
	return all
}
