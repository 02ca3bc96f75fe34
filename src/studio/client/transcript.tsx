import type { ComponentChildren, VNode } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { ShownMessage } from '../protocol.js'
import { Icon } from './icons.js'
import { LongText } from './json-tree.js'
import { formatDuration, formatJson } from './format.js'
import type { WantedEdit } from './what-if.js'

const shownMessages = 60
const names: Record<ShownMessage['role'], string> = {
  user: 'User',
  assistant: 'Agent',
  tool: 'Tool',
  system: 'Loop',
}

interface TranscriptProps {
  messages: readonly ShownMessage[]
  /** Streamed text that is not a message yet. */
  streaming: string
  /** Null when forks are not possible. */
  onEdit: ((wanted: WantedEdit) => void) | null
}

/** The transcript at this record, calls with their results. */
export function Transcript({ messages, streaming, onEdit }: TranscriptProps) {
  const [limit, setLimit] = useState(shownMessages)
  const end = useRef<HTMLDivElement>(null)
  const last = messages.at(-1)
  useEffect(() => {
    const panel = end.current?.closest('.panel')
    if (panel) panel.scrollTop = panel.scrollHeight
  }, [last, streaming])
  const hidden = Math.max(0, messages.length - limit)
  if (messages.length === 0 && streaming === '') {
    return <p class="empty">There are no messages yet.</p>
  }
  return (
    <div class="transcript">
      {hidden > 0 && (
        <button type="button" class="quiet-button" onClick={() => setLimit(limit + 200)}>
          {hidden} earlier messages
        </button>
      )}
      {messages.slice(hidden).map((message) => renderMessage(message, message === last, onEdit))}
      {streaming !== '' && (
        <article class="message assistant streaming" aria-busy="true">
          <header>Agent</header>
          <div class="said">{streaming}</div>
        </article>
      )}
      <div ref={end} />
    </div>
  )
}

const renderedMessages = new WeakMap<
  ShownMessage,
  { isLast: boolean; onEdit: TranscriptProps['onEdit']; node: VNode }
>()

/** Reuses the node of an unchanged message: a step of the slider changes few of them. */
function renderMessage(message: ShownMessage, isLast: boolean, onEdit: TranscriptProps['onEdit']): VNode {
  const known = renderedMessages.get(message)
  if (known?.isLast === isLast && known.onEdit === onEdit) return known.node
  const node = <Message key={message.id} message={message} isLast={isLast} onEdit={onEdit} />
  renderedMessages.set(message, { isLast, onEdit, node })
  return node
}

function Message({
  message,
  isLast,
  onEdit,
}: {
  message: ShownMessage
  isLast: boolean
  onEdit: TranscriptProps['onEdit']
}) {
  const { role, text, reasoning, calls, marks, id } = message
  return (
    <article class={`message ${role}${isLast ? ' newest' : ''}`}>
      <header>
        {names[role]}
        {marks.map((mark) => (
          <span key={mark} class={`mark mark-${mark}`}>
            {mark}
          </span>
        ))}
        {role === 'user' && onEdit && (
          <Pencil
            label="What if the user had said something else"
            onClick={() => onEdit({ edit: { message: id, text }, message })}
          />
        )}
      </header>
      {reasoning !== '' && (
        <details class="reasoning">
          <summary>Reasoning</summary>
          <LongText text={reasoning} />
        </details>
      )}
      {text !== '' && (
        <div class="said">
          <LongText text={text} first={6000} />
        </div>
      )}
      {calls.map((call) => (
        <Call key={call.id} call={call} message={message} onEdit={onEdit} />
      ))}
    </article>
  )
}

/** Opens a fork with something else in this place. */
function Pencil({ label, onClick }: { label: string; onClick: () => void }) {
  return (
    <button type="button" class="edit" aria-label={label} title={label} onClick={onClick}>
      <Icon name="edit" size={18} />
    </button>
  )
}

function Call({
  call,
  message,
  onEdit,
}: {
  call: ShownMessage['calls'][number]
  message: ShownMessage
  onEdit: TranscriptProps['onEdit']
}) {
  const { name, result, status, durationMs } = call
  return (
    <div class={`call ${status ?? 'open'}`}>
      <div class="call-head">
        <span class="call-name">{name}</span>
        <span class="call-status">
          {status ?? 'no result yet'}
          {durationMs !== null && ` · ${formatDuration(durationMs)}`}
        </span>
      </div>
      <Block text={formatJson(call.arguments)}>
        {onEdit && (
          <Pencil
            label={`What if ${name} were called with something else`}
            onClick={() => onEdit({ edit: { call: call.id, arguments: call.arguments }, message })}
          />
        )}
      </Block>
      {result !== null && (
        <Block text={formatJson(result)} kind="result">
          {onEdit && (
            <Pencil
              label={`What if ${name} had another result`}
              onClick={() => onEdit({ edit: { call: call.id, result }, message })}
            />
          )}
        </Block>
      )}
    </div>
  )
}

function Block({ text, kind = '', children }: { text: string; kind?: string; children?: ComponentChildren }) {
  return (
    <div class={`block ${kind}`}>
      <pre tabIndex={0}>
        <LongText text={text} first={1200} />
      </pre>
      {children}
    </div>
  )
}
