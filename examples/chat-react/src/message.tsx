import { Markdown } from 'markdown-to-jsx'
import type { Elicitation, ElicitationAnswer } from 'statewright'
import { type ChatMessage, readEnd } from './chats'
import { ElicitationView } from './elicitation'

type Part = ChatMessage['parts'][number]
type CallPart = Extract<Part, { toolCallId: string }>

interface MessageProps {
  message: ChatMessage
  isQueued: boolean
  onEdit: (() => void) | undefined
  onRegenerate: (() => void) | undefined
  onBranch: ((branch: number) => void) | undefined
  onApprove: (approvalId: string, approved: boolean) => void
  onPick: (toolCallId: string, seat: string) => void
  onAnswer: (toolCallId: string, answer: ElicitationAnswer) => void
}

export const textOf = ({ parts }: ChatMessage): string =>
  parts.map((part) => (part.type === 'text' ? part.text : '')).join('')

export function Message(props: MessageProps) {
  const { message, isQueued, onEdit, onRegenerate } = props
  const { id, role, parts } = message
  return (
    <article data-role={role} data-queued={isQueued || undefined}>
      {parts.map((part, at) => (
        <PartView key={'toolCallId' in part ? part.toolCallId : `${id}.${at}`} part={part} {...props} />
      ))}
      <div className="actions">
        {isQueued && <span>queued</span>}
        {!isQueued && onEdit && <button onClick={onEdit}>Edit</button>}
        {onRegenerate && <button onClick={onRegenerate}>Again</button>}
        <BranchView {...props} />
      </div>
    </article>
  )
}

/** The variants of a message, which are other answers or edits. */
function BranchView({ message, onBranch }: Pick<MessageProps, 'message' | 'onBranch'>) {
  const part = message.parts.find(({ type }) => type === 'data-branches')
  if (part?.type !== 'data-branches') return null
  const { position, count, branches } = part.data as { position: number; count: number; branches: number[] }
  const step = (label: string, sign: string, to: number | undefined) => (
    <button aria-label={label} disabled={!onBranch || to === undefined} onClick={() => onBranch?.(to ?? 1)}>
      {sign}
    </button>
  )
  return (
    <span className="branches">
      {step('Earlier variant', '‹', branches[position - 2])}
      {position} of {count}
      {step('Later variant', '›', branches[position])}
    </span>
  )
}

function PartView({ part, ...props }: { part: Part } & MessageProps) {
  switch (part.type) {
    case 'text':
      if (part.text === '') return null
      if (props.message.role === 'user') return <p className="text">{part.text}</p>
      return (
        <Markdown
          className="text"
          options={{ forceBlock: true, wrapper: 'div', disableParsingRawHTML: true }}
        >
          {part.text}
        </Markdown>
      )
    case 'data-statewright':
      return <EndView part={part} />
    case 'reasoning':
      return <p className="reasoning">{part.text}</p>
    case 'file':
      return part.mediaType.startsWith('image/') ? <img src={part.url} alt="" /> : null
    case 'tool-local_time':
      return null
    case 'tool-pick_seat':
      return <SeatView part={part} onPick={props.onPick} />
    case 'dynamic-tool':
      if (part.toolName !== 'elicitation') return <CallView part={part} onApprove={props.onApprove} />
      return (
        <ElicitationView
          elicitation={part.input as Elicitation}
          answer={part.state === 'output-available' ? (part.output as ElicitationAnswer) : undefined}
          onAnswer={(answer) => props.onAnswer(part.toolCallId, answer)}
        />
      )
    default:
      return 'toolCallId' in part ? <CallView part={part} onApprove={props.onApprove} /> : null
  }
}

/** The reason that the answer is incomplete. */
function EndView({ part }: { part: Part }) {
  const end = readEnd(part)
  return end?.message === undefined ? null : (
    <p className="end" data-state={end.state}>
      {end.message}
    </p>
  )
}

function SeatView({
  part,
  onPick,
}: { part: Extract<Part, { type: 'tool-pick_seat' }> } & Pick<MessageProps, 'onPick'>) {
  const picked = part.state === 'output-available' ? (part.output as { seat: string }).seat : undefined
  const isOpen = part.state === 'input-available'
  if (part.state === 'input-streaming') return null
  return (
    <section className="call" data-asks={isOpen || undefined}>
      <h2>Seats on the {part.input?.train}</h2>
      <p className="row">
        {part.input?.seats.map((seat) => (
          <button
            key={seat}
            disabled={!isOpen}
            aria-pressed={seat === picked}
            onClick={() => onPick(part.toolCallId, seat)}
          >
            {seat}
          </button>
        ))}
      </p>
    </section>
  )
}

const titles: Record<string, string> = { find_trains: 'Timetable', book: 'Booking' }
const states: Partial<Record<CallPart['state'], string>> = {
  'input-streaming': '…',
  'input-available': 'running …',
  'approval-requested': 'needs your approval',
  'approval-responded': 'answered',
  'output-denied': 'rejected',
}

function CallView({ part, onApprove }: { part: CallPart } & Pick<MessageProps, 'onApprove'>) {
  const name = part.type === 'dynamic-tool' ? (part.title ?? part.toolName) : part.type.replace('tool-', '')
  const isOpen = part.state === 'approval-requested'
  return (
    <section className="call" data-asks={isOpen || undefined} data-state={part.state}>
      <h2>
        {titles[name] ?? name} <small>{states[part.state]}</small>
      </h2>
      {!Array.isArray(part.output) && <Values of={part.input} />}
      {part.state === 'output-available' && <Values of={part.output} />}
      {part.state === 'output-error' && <p className="fault">{part.errorText}</p>}
      {part.state === 'approval-requested' && (
        <p className="row">
          <button className="primary" onClick={() => onApprove(part.approval.id, true)}>
            Approve
          </button>
          <button onClick={() => onApprove(part.approval.id, false)}>Reject</button>
        </p>
      )}
    </section>
  )
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function say(value: unknown): string {
  if (Array.isArray(value)) return value.map(say).join(', ')
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

/** A readable value. Objects become lines of names and values, and lists of objects become a table. */
function Values({ of }: { of: unknown }) {
  if (isObject(of))
    return (
      <dl>
        {Object.entries(of).map(([key, value]) => (
          <div key={key}>
            <dt>{key}</dt>
            <dd>{say(value)}</dd>
          </div>
        ))}
      </dl>
    )
  const [first] = Array.isArray(of) ? (of as unknown[]) : []
  if (!isObject(first)) return <p className="values">{say(of)}</p>
  const columns = Object.keys(first)
  return (
    <div className="wide">
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column}>{column}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {(of as Record<string, unknown>[]).map((row, at) => (
            <tr key={at}>
              {columns.map((column) => (
                <td key={column}>{say(row[column])}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
