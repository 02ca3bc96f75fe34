import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { formatCount, formatMoney } from '../../core/format/format-words.js'
import type { RequestView } from '../request-view.js'
import { formatJson } from '../format.js'
import { Facts, JsonTree } from './json-tree.js'
import { CodeText, LongText } from './long-text.js'
import { Loading, Trouble, useLoaded } from './loading.js'

interface RequestProps {
  seq: number
  load: (seq: number, all: boolean) => Promise<RequestView>
}

export function RequestTab({ seq, load }: RequestProps) {
  const [all, setAll] = useState(false)
  const { value, error, reload } = useLoaded(`${seq} ${all}`, () =>
    seq === 0 ? Promise.resolve(null) : load(seq, all),
  )
  if (seq === 0) return <p class="empty">This step has no answer yet.</p>
  if (error !== null) return <Trouble error={error} onRetry={reload} isPart />
  if (value === null) return <Loading what="Loading the request" />
  const { model, answer, instructions, messages, total, nudges, tools, settings, response } = value
  return (
    <div class="stack request">
      <Facts
        of={{
          Model: answer?.model ?? model?.name ?? 'unknown',
          Provider: model && [model.provider, model.host].filter(Boolean).join(', '),
          Step: `${value.step}, record ${value.seq}`,
          ...(answer && {
            Stopped: answer.finishReason ?? 'unknown',
            Tokens: `${formatCount(answer.inputTokens)} in (${formatCount(answer.cachedTokens)} cached), ${formatCount(answer.outputTokens)} out${answer.reasoningTokens > 0 ? ` (${formatCount(answer.reasoningTokens)} reasoning)` : ''}${answer.isEstimated ? ', estimated' : ''}`,
            Cost: answer.cost === null ? 'unknown price' : formatMoney(answer.cost),
          }),
        }}
      />
      {settings === null && (
        <p class="next">
          The log does not contain instructions, schemas or settings. Start the studio with this session's
          agent to see them.
        </p>
      )}
      {instructions !== null && (
        <details>
          <summary>Instructions</summary>
          <CodeText text={instructions} first={2000} />
        </details>
      )}
      <section>
        <h2>
          {all ? formatCount(total, 'message') : `${formatCount(messages.length, 'new message')} of ${total}`}
        </h2>
        <div class="segments" role="group" aria-label="Messages">
          <button aria-pressed={!all} onClick={() => setAll(false)}>
            New
          </button>
          <button aria-pressed={all} onClick={() => setAll(true)}>
            All
          </button>
        </div>
        {messages.map(({ id, role, text, calls }) => (
          <Part key={id} name={role} status={id}>
            {text !== '' && <CodeText text={text} />}
            {calls.map(({ name, arguments: input }, index) => (
              <pre key={index} tabIndex={0}>
                {name} <LongText text={formatJson(input)} first={800} />
              </pre>
            ))}
          </Part>
        ))}
        {nudges.map((text, index) => (
          <Part key={index} name="nudge" status="this request only">
            <CodeText text={text} />
          </Part>
        ))}
      </section>
      <details>
        <summary>{formatCount(tools.length, 'tool')}</summary>
        {tools.map(({ name, description, parameters }) => (
          <Part key={name} name={name}>
            {description !== null && <p>{description}</p>}
            {parameters !== null && <JsonTree value={parameters} name="parameters" />}
          </Part>
        ))}
      </details>
      {settings !== null && (
        <section>
          <h2>Settings</h2>
          <JsonTree value={settings} />
        </section>
      )}
      <section>
        <h2>Raw response</h2>
        <JsonTree value={response} />
      </section>
    </div>
  )
}

function Part({ name, status, children }: { name: string; status?: string; children: ComponentChildren }) {
  return (
    <div class="call">
      <div class="call-head">
        <span class="call-name">{name}</span>
        {status !== undefined && <span class="call-status">{status}</span>}
      </div>
      {children}
    </div>
  )
}
