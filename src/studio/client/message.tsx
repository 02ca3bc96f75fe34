import { formatDuration, formatCount } from '../../core/format/format-words.js'
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { InstructionsView, ShownMedia, ShownMessage } from '../protocol.js'
import { askWhatIf, type Change, toCallChanges, toInstructionsChange, toMessageChange } from './what-if.js'
import { formatJson, formatWord } from '../format.js'
import { Icon } from './icons.js'
import { LongText } from './long-text.js'
import { Markdown } from './markdown.js'
import { memoize } from './run-hooks.js'

interface MessageProps {
  message: ShownMessage
  isLast: boolean
  isRaw: boolean
  isFound: boolean
  isCurrent: boolean
  /** Opens the What if dialog for a change. Null when forks are not possible. */
  onEdit: ((change: Change) => void) | null
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

/** Memoized, because moving the slider changes few messages. */
export const Message = memoize((props: MessageProps) => {
  const { message, isRaw, isFound, onEdit } = props
  const { role, speaker, text, media, reasoning, calls, marks, forkAt } = message
  const isLoop = role === 'system' || marks.includes('internal')
  const why = marks.find((mark) => Object.hasOwn(loopReasons, mark))
  const shownMarks = isLoop ? marks.filter((mark) => mark !== 'internal' && mark !== why) : marks
  const state = `${props.isLast ? ' newest' : ''}${isFound ? ' found' : ''}${props.isCurrent ? ' current' : ''}`
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
        <Pencil change={toMessageChange(message)} onEdit={onEdit} />
      </header>
      {reasoning !== '' && (
        <details class="reasoning" open={isFound || undefined}>
          <summary>Reasoning</summary>
          <LongText text={reasoning} />
        </details>
      )}
      {text !== '' && (
        <div class="said">
          <Said text={text} isRaw={isRaw} isFound={isFound} />
        </div>
      )}
      <Pictures media={media} />
      {calls.map((call) => (
        <Call key={call.id} call={call} forkAt={forkAt} isOpen={isFound} onEdit={onEdit} />
      ))}
    </article>
  )
})

const instructionSources: Record<InstructionsView['from'], string> = {
  agent: 'current instructions of the agent',
  step: 'for this step',
  fork: 'for this fork only',
}

interface InstructionsProps {
  instructions: InstructionsView
  onEdit: MessageProps['onEdit']
}

export function Instructions({ instructions, onEdit }: InstructionsProps) {
  return (
    <article class="message instructions">
      <header>
        Instructions <span class="why">{instructionSources[instructions.from]}</span>
        <Pencil change={toInstructionsChange(instructions)} onEdit={onEdit} />
      </header>
      <div class="said as-written">
        <LongText text={instructions.text} first={500} />
      </div>
    </article>
  )
}

const firstChars = 6000

interface SaidProps extends Partial<Pick<MessageProps, 'isRaw' | 'isFound'>> {
  text: string
}

export function Said({ text, isRaw = false, isFound = false }: SaidProps) {
  const [isOpen, open] = useState(false)
  if (isRaw) return <LongText text={text} first={isFound ? Infinity : firstChars} class="as-written" />
  const isCut = !isOpen && !isFound && text.length > firstChars
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

/** Nothing if the part cannot be changed. */
function Pencil({ change, onEdit }: { change: Change | null } & Pick<MessageProps, 'onEdit'>) {
  if (!change || !onEdit) return null
  const label = askWhatIf(change)
  return (
    <button class="edit" aria-label={label} title={label} onClick={() => onEdit(change)}>
      {change.kind === 'result' && 'What if'}
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
  const changes = toCallChanges(call, forkAt)
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
          <Pencil change={changes.decision} onEdit={onEdit} />
        </p>
      )}
      <Block text={formatJson(call.arguments)} isOpen={isOpen}>
        <Pencil change={changes.arguments} onEdit={onEdit} />
      </Block>
      {result !== null && (
        <Block text={formatJson(result)} kind="result" isOpen={isOpen}>
          <Pencil change={changes.result} onEdit={onEdit} />
        </Block>
      )}
      {/* The result text already has a line for every other attachment. */}
      <Pictures media={media.filter(({ picture }) => picture !== null)} />
    </div>
  )
}

const firstLines = 10
const mostChars = 700

interface BlockProps {
  text: string
  kind?: string
  isOpen: boolean
  children?: ComponentChildren
}

function Block({ text, kind = '', isOpen, children }: BlockProps) {
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
