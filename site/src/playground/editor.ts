import { autocompletion, type CompletionContext, type CompletionResult } from '@codemirror/autocomplete'
import { json } from '@codemirror/lang-json'
import { type Diagnostic, lintGutter, setDiagnostics } from '@codemirror/lint'
import { Annotation, EditorState } from '@codemirror/state'
import { EditorView } from '@codemirror/view'
import { basicSetup } from 'codemirror'
import { getLocation } from 'jsonc-parser'
import type { Mark } from './json-places.ts'

interface EditorOptions {
  parent: HTMLElement
  label: string
  text: string
  /** The JSON Schema for key completion. */
  schema: object
  /** Called with the reader's edits, but not with loaded text. */
  onChange: (text: string) => void
}

export interface Editor {
  /** Replaces the text. The editor already contains the reader's edits, so only external text is loaded. */
  loadText(text: string): void
  setMarks(marks: readonly Mark[]): void
  /** Restores the cursor position of the field that the editor replaces. */
  select(from: number, to: number): void
}

const isLoaded = Annotation.define<true>()

/** A JSON editor that marks errors and completes keys. Tab leaves the editor, as in other fields. */
export function createEditor({ parent, label, text, schema, onChange }: EditorOptions): Editor {
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        basicSetup,
        json(),
        lintGutter(),
        autocompletion({ override: [(context) => completeKeys(context, schema)] }),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ 'aria-label': label }),
        EditorView.updateListener.of((update) => {
          if (!update.docChanged || update.transactions.some((one) => one.annotation(isLoaded))) return
          onChange(update.state.doc.toString())
        }),
      ],
    }),
  })
  // Long texts scroll, so the editor must be reachable by keyboard.
  view.scrollDOM.tabIndex = 0
  return {
    loadText(next) {
      if (view.state.doc.toString() === next) return
      view.dispatch({
        changes: { from: 0, to: view.state.doc.length, insert: next },
        annotations: isLoaded.of(true),
      })
    },
    setMarks(marks) {
      const { length } = view.state.doc
      const diagnostics = marks.map(
        ({ from, to, message }): Diagnostic => ({
          from: Math.min(from, length),
          to: Math.min(to, length),
          message,
          severity: 'error',
        }),
      )
      view.dispatch(setDiagnostics(view.state, diagnostics))
    },
    select(from, to) {
      view.dispatch({ selection: { anchor: from, head: to } })
      view.focus()
    },
  }
}

interface Schema {
  properties?: Record<string, Schema>
  items?: Schema
  anyOf?: Schema[]
  enum?: unknown[]
  const?: unknown
  description?: string
}

/** The valid keys of the object at the cursor, or the values of a key with few values. */
function completeKeys(context: CompletionContext, root: Schema): CompletionResult | null {
  const word = context.matchBefore(/"?[\w]*/)
  if (word === null || (word.from === word.to && !context.explicit)) return null
  const { path, isAtPropertyKey } = getLocation(context.state.doc.toString(), context.pos)
  const around = isAtPropertyKey ? path.slice(0, -1) : path
  const found = around.reduce<Schema[]>(
    (schemas, part) =>
      schemas
        .flatMap(listChoices)
        .flatMap((one) => (typeof part === 'number' ? one.items : one.properties?.[part]) ?? []),
    [root],
  )
  const choices = found.flatMap(listChoices)
  const words = isAtPropertyKey
    ? choices.flatMap(({ properties = {} }) => Object.keys(properties))
    : choices.flatMap((one) => one.enum ?? (one.const === undefined ? [] : [one.const]))
  const options = [...new Set(words)].map((one) => ({
    label: JSON.stringify(one),
    type: isAtPropertyKey ? 'property' : 'enum',
  }))
  return options.length === 0 ? null : { from: word.from, options }
}

function listChoices(schema: Schema): Schema[] {
  return schema.anyOf ? schema.anyOf.flatMap(listChoices) : [schema]
}
