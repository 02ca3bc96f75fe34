import { formatDuration, formatCount } from '../../core/format/format-words.js'
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { InstructionsView, ShownMedia, ShownMessage } from '../protocol.js'
import { formatJson, formatWord } from './format.js'
import { Icon } from './icons.js'
import { LongText } from './json-tree.js'
import { Markdown } from './markdown.js'
import type { WhatIf } from './what-if.js'

export interface ShownAs {
  isLast: boolean
  isRaw: boolean
  isFound: boolean
  isCurrent: boolean
}

interface MessageProps {
  message: ShownMessage
  as: ShownAs
  /** Opens the What if dialog for a change. Null when forks are not possible. */
  onEdit: ((wanted: WhatIf) => void) | null
}

const names: Record<ShownMessage['role'], string> = {
  user: 'User',
  assistant: 'Agent',
  tool: 'Tool',
  system: 'Loop',
}

const loopReasons: Readonly<Record<string, string>> = {
  max_tokens_recovery: 'asks for the rest of a truncated answer',
  output_repair: 'asks for an answer that matches the schema',
  empty_response: 'asks again after an empty answer',
  resumed: 'reports that the run was resumed',
}

export function Message({ message, as, onEdit }: MessageProps) {
  const { role, speaker, text, media, reasoning, calls, marks, id, forkAt } = message
  const isLoop = role === 'system' || marks.includes('internal')
  const why = marks.find((mark) => Object.hasOwn(loopReasons, mark))
  const shownMarks = isLoop ? marks.filter((mark) => mark !== 'internal' && mark !== why) : marks
  const state = `${as.isLast ? ' newest' : ''}${as.isFound ? ' found' : ''}${as.isCurrent ? ' current' : ''}`
  return (
    <article class={`message ${isLoop ? 'loop' : role}${state}`}>
      <header>
        {isLoop ? 'Loop' : (speaker ?? names[role])}
        {isLoop && why !== undefined && <span class="why">{loopReasons[why]}</span>}
        {shownMarks.map((mark) => (
          <span key={mark} class={`mark mark-${mark}`}>
            {mark}
          </span>
        ))}
        {role === 'user' && !isLoop && onEdit && forkAt !== null && (
          <Pencil
            label="What if the user message were different"
            onClick={() => onEdit({ edit: { message: id, content: text }, at: forkAt })}
          />
        )}
      </header>
      {reasoning !== '' && (
        <details class="reasoning" open={as.isFound || undefined}>
          <summary>Reasoning</summary>
          <LongText text={reasoning} />
        </details>
      )}
      {text !== '' && (
        <div class="said">
          <Said text={text} as={as} />
        </div>
      )}
      <Pictures media={media} />
      {calls.map((call) => (
        <Call key={call.id} call={call} forkAt={forkAt} isOpen={as.isFound} onEdit={onEdit} />
      ))}
    </article>
  )
}

const instructionSources: Record<InstructionsView['from'], string> = {
  agent: 'current instructions of the agent',
  step: 'for this step',
  fork: 'for this fork only',
}

export function Instructions({
  instructions,
  onEdit,
}: {
  instructions: InstructionsView
  onEdit: MessageProps['onEdit']
}) {
  const { forkAt: at } = instructions
  return (
    <article class="message instructions">
      <header>
        Instructions <span class="why">{instructionSources[instructions.from]}</span>
        {onEdit && at !== null && (
          <Pencil
            label="What if the instructions were different"
            onClick={() => onEdit({ edit: { instructions: instructions.text }, at })}
          />
        )}
      </header>
      <div class="said as-written">
        <LongText text={instructions.text} first={500} />
      </div>
    </article>
  )
}

const firstChars = 6000

const asMarkdown: Pick<ShownAs, 'isRaw' | 'isFound'> = { isRaw: false, isFound: false }

export function Said({ text, as = asMarkdown }: { text: string; as?: typeof asMarkdown }) {
  const [isOpen, open] = useState(false)
  if (as.isRaw) return <LongText text={text} first={as.isFound ? Infinity : firstChars} class="as-written" />
  const isCut = !isOpen && !as.isFound && text.length > firstChars
  return (
    <>
      <Markdown text={isCut ? text.slice(0, firstChars) : text} />
      {isCut && (
        <button class="quiet-button" onClick={() => open(true)}>
          … {formatCount(text.length - firstChars)} more characters
        </button>
      )}
    </>
  )
}

function Pictures({ media }: { media: readonly ShownMedia[] }) {
  if (media.length === 0) return null
  return (
    <div class="media">
      {media.map(({ words, picture }, at) =>
        picture === null ? <p key={at}>{words}</p> : <img key={at} src={picture} alt={words} title={words} />,
      )}
    </div>
  )
}

function Pencil({ label, words, onClick }: { label: string; words?: string; onClick: () => void }) {
  return (
    <button class="edit" aria-label={label} title={label} onClick={onClick}>
      {words}
      <Icon name="edit" size={18} />
    </button>
  )
}

interface CallProps {
  call: ShownMessage['calls'][number]
  forkAt: number | null
  isOpen: boolean
  onEdit: MessageProps['onEdit']
}

function Call({ call, forkAt, isOpen, onEdit }: CallProps) {
  const { name, result, media, status, durationMs, decision } = call
  return (
    <div class={`call ${status ?? 'open'}`} data-call={call.id}>
      <div class="call-head">
        <span class="call-name">{name}</span>
        <span class="call-status">
          {formatWord(status ?? 'no result yet')}
          {durationMs !== null && ` · ${formatDuration(durationMs)}`}
          {call.edited && ` · edited ${call.edited}`}
        </span>
      </div>
      {decision && (
        <p class="decision">
          <span>
            {decision.kind === 'approved' ? 'Approved' : 'Rejected'} by {decision.by.join(', ') || 'a person'}
            {decision.words !== '' &&
              (decision.kind === 'approved' ? ', with other arguments' : `: ${decision.words}`)}
          </span>
          {onEdit && (
            <Pencil
              label={`What if ${name} were decided differently`}
              onClick={() => onEdit({ decided: decision, call, at: decision.seq - 1 })}
            />
          )}
        </p>
      )}
      <Block text={formatJson(call.arguments)} isOpen={isOpen}>
        {onEdit && forkAt !== null && (
          <Pencil
            label={`What if ${name} had different arguments`}
            onClick={() => onEdit({ edit: { call: call.id, arguments: call.arguments }, call, at: forkAt })}
          />
        )}
      </Block>
      {result !== null && (
        <Block text={formatJson(result)} kind="result" isOpen={isOpen}>
          {onEdit && call.forkAt !== null && (
            <Pencil
              label={`What if ${name} had a different result`}
              words="What if"
              onClick={() => onEdit({ edit: { call: call.id, result }, call, at: call.forkAt ?? 0 })}
            />
          )}
        </Block>
      )}
      {/* The result text already has a line for every other attachment. */}
      <Pictures media={media.filter(({ picture }) => picture !== null)} />
    </div>
  )
}

const firstLines = 10
const mostChars = 700

function Block({
  text,
  kind = '',
  isOpen,
  children,
}: {
  text: string
  kind?: string
  isOpen: boolean
  children?: ComponentChildren
}) {
  const [wants, want] = useState(false)
  const beginning = text.split('\n', firstLines).join('\n').slice(0, mostChars)
  // A button for a few characters would be longer than the text.
  const isLong = text.length > beginning.length + 60
  const isWhole = !isLong || wants || isOpen
  return (
    <div class={`block ${kind}`}>
      <pre tabIndex={0}>
        {isWhole ? <LongText text={text} first={isOpen ? Infinity : firstChars} /> : beginning}
      </pre>
      {isLong && !isOpen && (
        <button class="quiet-button" aria-expanded={isWhole} onClick={() => want(!isWhole)}>
          {isWhole ? 'Show less' : `Show all ${formatCount(text.length)} characters`}
        </button>
      )}
      {children}
    </div>
  )
}
