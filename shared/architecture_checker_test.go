package shared_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// file is one Go file of the module and what the rules need to know of it.
type file struct {
	path    string // from the module's root, with slashes
	family  string // the part of the module that it belongs to, see familyOf
	test    bool   // it is compiled into tests only
	support bool   // its package exists for tests and local runs only
	syntax  *ast.File
	files   *token.FileSet
}

// violations returns every breach of the rules in the module, as path:line: text.
func violations(module fs.FS) ([]string, error) {
	var found []string
	err := fs.WalkDir(module, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			base := path.Base(name)
			if name != "." && (base == "testdata" || base == "node_modules" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		source, err := fs.ReadFile(module, name)
		if err != nil {
			return err
		}
		f, err := parse(name, source)
		if err != nil {
			return err
		}
		found = append(found, f.violations()...)
		return nil
	})
	slices.Sort(found)
	return found, err
}

func parse(name string, source []byte) (file, error) {
	files := token.NewFileSet()
	syntax, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	if err != nil {
		return file{}, err
	}
	dir := path.Dir(name)
	return file{
		path: name, family: familyOf(dir), test: strings.HasSuffix(name, "_test.go"),
		support: isSupport(dir), syntax: syntax, files: files,
	}, nil
}

// familyOf is the unit that import rules speak of: "shared/dynamo" with all that is
// below it, "functions/api", or a whole top-level directory such as "infra".
func familyOf(dir string) string {
	parts := strings.Split(dir, "/")
	if len(parts) > 1 && (parts[0] == "shared" || parts[0] == "functions") {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

func (f file) at(position token.Pos, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", f.path, f.files.Position(position).Line, fmt.Sprintf(format, args...))
}

func (f file) violations() []string {
	var found []string
	for _, spec := range f.syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return append(found, f.at(spec.Pos(), "import %s cannot be read", spec.Path.Value))
		}
		if reason := f.forbidsImport(imported); reason != "" {
			found = append(found, f.at(spec.Pos(), "imports %s: %s", imported, reason))
		}
	}
	if f.test || f.support {
		return found
	}
	return append(found, f.machineUses()...)
}

func (f file) forbidsImport(imported string) string {
	ours, isOurs := strings.CutPrefix(imported, modulePath+"/")
	if !isOurs {
		return f.forbidsForeign(imported)
	}
	family := familyOf(ours)
	if family == f.family {
		return f.forbidsSupport(ours)
	}
	// Not even a test may reach these, or the direction of the whole would turn round.
	switch top, _, _ := strings.Cut(ours, "/"); top {
	case "functions", "infra":
		return "nothing imports functions or infra"
	case "scripts":
		return "only scripts import scripts"
	}
	if f.test || f.support {
		return ""
	}
	allowed, known := mayImport[f.family]
	if top, _, _ := strings.Cut(f.family, "/"); !known {
		allowed, known = mayImport[top]
	}
	switch {
	case !known:
		return fmt.Sprintf("%s has no import rule; add it to mayImport", f.family)
	case !slices.Contains(allowed, family) && !slices.Contains(allowed, "shared"):
		return fmt.Sprintf("%s may import of ours only %v", f.family, allowed)
	}
	return f.forbidsSupport(ours)
}

func (f file) forbidsSupport(ours string) string {
	if slices.Contains(adapters, ours) && !f.test && !f.support && strings.HasPrefix(f.family, "shared/") && path.Dir(f.path) != ours {
		return "only a function chooses its adapter; the rest knows the port"
	}
	if isSupport(ours) && !f.test && !f.support && f.family != "scripts" {
		return "what is deployed does not import what tests and local runs are made of"
	}
	return ""
}

func (f file) forbidsForeign(imported string) string {
	first, _, _ := strings.Cut(imported, "/")
	switch {
	case f.test:
		return ""
	case slices.Contains(standardLibraryOnly, f.family) && strings.Contains(first, "."):
		return f.family + " imports the standard library only"
	case slices.Contains(withoutMachine, f.family) && !f.support && slices.Contains(machinePackages, imported):
		return f.family + " is handed time, chance and input; it does not ask the machine"
	}
	return ""
}

// machineUses finds clocks and goroutines that nobody handed in.
func (f file) machineUses() []string {
	var found []string
	noClock, noGoroutine := slices.Contains(withoutMachine, f.family), slices.Contains(withoutGoroutines, f.family)
	clock := f.nameOf("time")
	ast.Inspect(f.syntax, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.GoStmt:
			if noGoroutine {
				found = append(found, f.at(n.Pos(), "go statement: %s starts no goroutine", f.family))
			}
		case *ast.SelectorExpr:
			// Groups start their goroutines by a method of this name.
			if n.Sel.Name == "Go" && noGoroutine {
				found = append(found, f.at(n.Pos(), "call of Go: %s starts no goroutine", f.family))
			}
			if of, isName := n.X.(*ast.Ident); isName && noClock && of.Name == clock && slices.Contains(clockNames, n.Sel.Name) {
				found = append(found, f.at(n.Pos(), "time.%s: %s is handed the time; it does not ask for it", n.Sel.Name, f.family))
			}
		}
		return true
	})
	return found
}

// nameOf is the name under which the file uses an imported package, or "".
func (f file) nameOf(imported string) string {
	for _, spec := range f.syntax.Imports {
		if spec.Path.Value != strconv.Quote(imported) {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(imported)
	}
	return ""
}
