// Package events is the contract of what Holdfast tells the world: the JSON schemas of its
// events. Who takes in events imports package consumer, which checks them.
package events

import (
	"embed"
	"io/fs"
)

// SchemaFolder is where the schemas are in Files: one for each type of event, named
// "type.json", and definitions.json with the parts in common.
const SchemaFolder = "schema"

//go:embed schema/*.json
var files embed.FS

// Files are the files of this folder that are part of the contract.
func Files() fs.FS { return files }
