import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Editor } from './editor.ts'
import { type Draft, type Example, examples, guardPresets } from './examples.ts'
import type { Mark } from './json-places.ts'
import type * as loopModule from './loop.ts'
import type { Endpoint, Faults } from './play.ts'

type Loop = typeof loopModule

interface ScriptPaneProps {
  draft: Draft
  faults: Faults
  endpoint: Endpoint | null
  /** Null until it has loaded. */
  loop: Loop | null
  /** Receives the changed fields. The other fields keep their current values. */
  onDraft: (change: Partial<Draft>) => void
  onEndpoint: (endpoint: Endpoint | null) => void
}

/** The editors for the user's messages, the model's script and the agent's settings. */
export function ScriptPane({ draft, faults, endpoint, loop, onDraft, onEndpoint }: ScriptPaneProps) {
  const { input, script, settings } = draft
  /** Counts the selections of examples and guards. */
  const [loads, setLoads] = useState(0)
  const load = (change: Partial<Draft>): void => {
    onDraft(change)
    setLoads((count) => count + 1)
  }
  const isExample = examples.findIndex(
    (one) => one.script === script && one.input === input && one.settings === settings,
  )
  /** The last selected example. It does not change with edits. */
  const last = useRef<Example | null>(null)
  last.current = examples[isExample] ?? last.current
  const isPreset = guardPresets.findIndex((one) => one.settings === settings)
  return (
    <section class="script" aria-label="The script">
      <div class="part">
        <label>
          Example
          <select
            value={isExample}
            onChange={({ currentTarget }) => {
              const chosen = examples[Number(currentTarget.value)]
              if (chosen) load({ input: chosen.input, script: chosen.script, settings: chosen.settings })
            }}
          >
            {isExample < 0 && <option value={-1}>Custom</option>}
            {examples.map(({ name }, at) => (
              <option key={name} value={at}>
                {name}
              </option>
            ))}
          </select>
        </label>
        {last.current && (
          <p class="hint swap">
            {/* Keeps its space when it no longer applies, so that the editor below does not jump at the first letter. */}
            <span class={isExample < 0 ? 'gone' : ''}>{last.current.watch}</span>
            {isExample < 0 && <span>Edited: “{last.current.name}”.</span>}
          </p>
        )}
        <label>
          Your message
          <textarea
            rows={2}
            value={input}
            onInput={({ currentTarget }) => onDraft({ input: currentTarget.value })}
          />
        </label>
        {endpoint === null ? (
          <JsonField
            label="The model's script, turn by turn (JSON)"
            text={script}
            loads={loads}
            marks={faults.script}
            schema={loop?.scriptSchema}
            onText={(text) => onDraft({ script: text })}
          />
        ) : (
          <p class="hint">Your endpoint answers the requests, so the script is not used.</p>
        )}
        <p class="hint">
          The tools are list_files, read_file, calculate and pay. Calls of pay need your approval.
        </p>
      </div>
      <div class="part">
        <label>
          Guards
          <select
            value={isPreset}
            onChange={({ currentTarget }) => {
              const chosen = guardPresets[Number(currentTarget.value)]
              if (chosen) load({ settings: chosen.settings })
            }}
          >
            {isPreset < 0 && <option value={-1}>Custom</option>}
            {guardPresets.map(({ name }, at) => (
              <option key={name} value={at}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <JsonField
          label="Settings of the agent (JSON)"
          text={settings}
          loads={loads}
          marks={faults.settings}
          schema={loop?.settingsSchema}
          onText={(text) => onDraft({ settings: text })}
        />
        <EndpointFields endpoint={endpoint} onEndpoint={onEndpoint} />
      </div>
    </section>
  )
}

interface JsonFieldProps {
  label: string
  text: string
  /** A new number marks the text as external. */
  loads: number
  marks: readonly Mark[]
  /** Undefined until the loop has loaded. Until then a plain field contains the text. */
  schema: object | undefined
  onText: (text: string) => void
}

function JsonField({ label, text, loads, marks, schema, onText }: JsonFieldProps) {
  const box = useRef<HTMLDivElement>(null)
  const plain = useRef<HTMLTextAreaElement>(null)
  const [editor, setEditor] = useState<Editor | null>(null)
  const latest = useRef({ text, marks, onText })
  latest.current = { text, marks, onText }
  useEffect(() => {
    if (schema === undefined) return
    // Yields between two editors, so that the page stays responsive.
    const load = async (): Promise<void> => {
      const { createEditor } = await import('./editor.ts')
      await new Promise((resolve) => setTimeout(resolve))
      if (box.current === null || box.current.hasChildNodes()) return
      const field = plain.current
      const created = createEditor({
        parent: box.current,
        label,
        text: field?.value ?? latest.current.text,
        schema,
        onChange: (next) => latest.current.onText(next),
      })
      created.setMarks(latest.current.marks)
      if (field !== null && document.activeElement === field)
        created.select(field.selectionStart, field.selectionEnd)
      setEditor(created)
    }
    // If loading fails, the plain field stays.
    load().catch(() => {})
  }, [schema])
  // The editor owns its text. Its edits return here as `text` and may be older than the current content. Writing them into the
  // editor would emit them again, in an endless loop.
  useLayoutEffect(() => editor?.loadText(text), [loads])
  useLayoutEffect(() => editor?.setMarks(marks), [editor, marks])
  return (
    <div class="field">
      <span class="name">{label}</span>
      <div class="editor">
        {editor === null && (
          <textarea
            ref={plain}
            class="plain"
            aria-label={label}
            spellcheck={false}
            rows={text.split('\n').length}
            value={text}
            onInput={({ currentTarget }) => onText(currentTarget.value)}
          />
        )}
        <div ref={box} />
      </div>
      <ul class="faults" aria-live="polite">
        {marks.map(({ from, line, message }) => (
          <li key={`${from}${message}`}>
            Line {line}: {message}
          </li>
        ))}
      </ul>
    </div>
  )
}

function EndpointFields({ endpoint, onEndpoint }: Pick<ScriptPaneProps, 'endpoint' | 'onEndpoint'>) {
  const { baseURL, model, key } = endpoint ?? { baseURL: '', model: '', key: '' }
  const set = (part: Partial<Endpoint>) => onEndpoint({ baseURL, model, key, ...part })
  return (
    <details class="endpoint">
      <summary>Use your own model</summary>
      <label>
        <span>
          <input
            type="checkbox"
            checked={endpoint !== null}
            onChange={({ currentTarget }) =>
              onEndpoint(
                currentTarget.checked
                  ? { baseURL: 'http://localhost:11434/v1', model: 'qwen3', key: '' }
                  : null,
              )
            }
          />{' '}
          Use an OpenAI-compatible endpoint
        </span>
      </label>
      {endpoint !== null && (
        <>
          <label>
            Base URL
            <input
              type="url"
              value={baseURL}
              onInput={({ currentTarget }) => set({ baseURL: currentTarget.value })}
            />
          </label>
          <label>
            Model
            <input value={model} onInput={({ currentTarget }) => set({ model: currentTarget.value })} />
          </label>
          <label>
            Key
            <input
              type="password"
              autocomplete="off"
              value={key}
              onInput={({ currentTarget }) => set({ key: currentTarget.value })}
            />
          </label>
          <p class="hint">
            The key stays in the memory of this page. It is neither stored nor included in links. The endpoint
            must allow requests from this page's origin.
          </p>
        </>
      )}
    </details>
  )
}
