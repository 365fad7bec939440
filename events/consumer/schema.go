package consumer

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"holdfast/events"
)

const (
	// schemaBase makes the names of the schemas absolute. Nothing is fetched from there.
	schemaBase = "holdfast:///"
	// definitionsFile has the parts in common and is no type of event.
	definitionsFile = "definitions.json"
	// additional is the keyword that says what becomes of members that are not described.
	additional = "additionalProperties"
)

// schemas are the schemas of all types of events, read once.
var schemas = sync.OnceValues(func() (map[Type]*jsonschema.Schema, error) {
	files, err := fs.Glob(events.Files(), events.SchemaFolder+"/*.json")
	if err != nil {
		return nil, fmt.Errorf("find the schemas of the events: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	for _, file := range files {
		document, err := readSchema(file)
		if err != nil {
			return nil, fmt.Errorf("schema %s: %w", file, err)
		}
		if err := compiler.AddResource(schemaBase+file, document); err != nil {
			return nil, fmt.Errorf("schema %s: %w", file, err)
		}
	}
	out := make(map[Type]*jsonschema.Schema, len(files))
	for _, file := range files {
		name := path.Base(file)
		if name == definitionsFile {
			continue
		}
		schema, err := compiler.Compile(schemaBase + file)
		if err != nil {
			return nil, fmt.Errorf("schema %s: %w", file, err)
		}
		out[Type(strings.TrimSuffix(name, path.Ext(name)))] = schema
	}
	return out, nil
})

func readSchema(file string) (any, error) {
	source, err := events.Files().Open(file)
	if err != nil {
		return nil, err
	}
	document, err := jsonschema.UnmarshalJSON(source)
	if closeErr := source.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, err
	}
	openUp(document)
	return document, nil
}

// openUp lets members through that are not described. The schemas forbid them because who
// emits must describe first; who takes in must not fail on the day that more is told.
func openUp(schema any) {
	switch v := schema.(type) {
	case []any:
		for _, item := range v {
			openUp(item)
		}
	case map[string]any:
		if v[additional] == false {
			delete(v, additional)
		}
		for _, member := range v {
			openUp(member)
		}
	}
}
