import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Editor } from './editor.ts'
import { type Draft, type Example, examples, guardPresets } from './examples.ts'
import { lineOf, type Mark } from './json-places.ts'
import type { Endpoint, Faults } from './play.ts'
import { scriptSchema, settingsSchema } from './schemas.ts'
import { tools } from './tools.ts'

interface ScriptPaneProps {
  draft: Draft
  faults: Faults
  endpoint: Endpoint | null
  /** Hears which texts change; the others stay as they are by then. */
  onDraft: (change: Partial<Draft>) => void
  onEndpoint: (endpoint: Endpoint | null) => void
}

const toolNames = tools.map(({ name }) => name)

/** What is played: the words of a person, the script of the model, and the settings of the agent. */
export function ScriptPane({ draft, faults, endpoint, onDraft, onEndpoint }: ScriptPaneProps) {
  const { input, script, settings } = draft
  /** How often an example or guards were chosen. */
  const [loads, setLoads] = useState(0)
  const load = (change: Partial<Draft>): void => {
    onDraft(change)
    setLoads((count) => count + 1)
  }
  const isExample = examples.findIndex(
    (one) => one.script === script && one.input === input && one.settings === settings,
  )
  /** The example that is shown, or was before something in it was changed. */
  const last = useRef<Example | null>(null)
  last.current = examples[isExample] ?? last.current
  const isPreset = guardPresets.findIndex((one) => one.settings === settings)
  return (
    <section class="script" aria-label="The script">
      <label>
        Example
        <select
          value={isExample}
          onChange={({ currentTarget }) => {
            const chosen = examples[Number(currentTarget.value)]
            if (chosen) load({ input: chosen.input, script: chosen.script, settings: chosen.settings })
          }}
        >
          {isExample < 0 && <option value={-1}>Your own</option>}
          {examples.map(({ name }, at) => (
            <option key={name} value={at}>
              {name}
            </option>
          ))}
        </select>
      </label>
      {last.current && (
        <p class="hint swap">
          {/* It keeps its room when it no longer holds: the editor below must not jump at the first letter. */}
          <span class={isExample < 0 ? 'gone' : ''}>{last.current.watch}</span>
          {isExample < 0 && <span>Your own, after “{last.current.name}”.</span>}
        </p>
      )}
      <label>
        You say
        <textarea
          rows={2}
          value={input}
          onInput={({ currentTarget }) => onDraft({ input: currentTarget.value })}
        />
      </label>
      {endpoint === null ? (
        <JsonField
          label="The model answers, turn by turn (JSON)"
          text={script}
          loads={loads}
          marks={faults.script}
          schema={scriptSchema}
          onText={(text) => onDraft({ script: text })}
        />
      ) : (
        <p class="hint">An endpoint of yours answers. The script waits.</p>
      )}
      <p class="hint">
        The model can call {toolNames.slice(0, -1).join(', ')} and {toolNames.at(-1)}, which needs your
        approval.
      </p>
      <label>
        Guards to try
        <select
          value={isPreset}
          onChange={({ currentTarget }) => {
            const chosen = guardPresets[Number(currentTarget.value)]
            if (chosen) load({ settings: chosen.settings })
          }}
        >
          {isPreset < 0 && <option value={-1}>As below</option>}
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
        schema={settingsSchema}
        onText={(text) => onDraft({ settings: text })}
      />
      <EndpointFields endpoint={endpoint} onEndpoint={onEndpoint} />
    </section>
  )
}

interface JsonFieldProps {
  label: string
  text: string
  /** Another number says that the text comes from elsewhere than this field. */
  loads: number
  marks: readonly Mark[]
  schema: object
  onText: (text: string) => void
}

function JsonField({ label, text, loads, marks, schema, onText }: JsonFieldProps) {
  const box = useRef<HTMLDivElement>(null)
  const editor = useRef<Editor | null>(null)
  const listener = useRef(onText)
  listener.current = onText
  const latest = useRef({ text, marks })
  latest.current = { text, marks }
  useEffect(() => {
    // The page is there before its editors are, and listens to the reader between one and the next.
    const load = async (): Promise<void> => {
      const { createEditor } = await import('./editor.ts')
      await new Promise((resolve) => setTimeout(resolve))
      if (box.current === null || editor.current) return
      box.current.replaceChildren()
      editor.current = createEditor({
        parent: box.current,
        label,
        text: latest.current.text,
        schema,
        onChange: (next) => listener.current(next),
      })
      editor.current.setMarks(latest.current.marks)
    }
    void load()
  }, [])
  // The editor owns its text. What it has said comes back here as `text`, and may be older than what was typed since: written into the editor, it
  // would be said again, and so on for ever.
  useLayoutEffect(() => editor.current?.loadText(text), [loads])
  useLayoutEffect(() => editor.current?.setMarks(marks), [marks])
  return (
    <div class="field">
      <span class="name">{label}</span>
      <div class="editor" ref={box}>
        <pre class="unread">{text}</pre>
      </div>
      <ul class="faults" aria-live="polite">
        {marks.map(({ from, message }) => (
          <li key={`${from}${message}`}>
            Line {lineOf(text, from)}: {message}
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
      <summary>Ask a model of yours instead</summary>
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
          An OpenAI-compatible endpoint answers
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
            The key stays in the memory of this page: it is in no link and in no storage. The endpoint has to
            allow requests of this page's origin.
          </p>
        </>
      )}
    </details>
  )
}
