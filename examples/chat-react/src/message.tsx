import type { ChatMessage } from './chats'

type Part = ChatMessage['parts'][number]
type CallPart = Extract<Part, { toolCallId: string }>

interface MessageProps {
  message: ChatMessage
  isQueued: boolean
  onEdit: (() => void) | undefined
  onRegenerate: (() => void) | undefined
  onApprove: (approvalId: string, approved: boolean) => void
  onPick: (toolCallId: string, seat: string) => void
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
      <p className="actions">
        {isQueued && <span>queued</span>}
        {!isQueued && onEdit && <button onClick={onEdit}>Edit</button>}
        {onRegenerate && <button onClick={onRegenerate}>Again</button>}
      </p>
    </article>
  )
}

function PartView({ part, ...props }: { part: Part } & MessageProps) {
  switch (part.type) {
    case 'text':
      return part.text === '' ? null : <p className="text">{part.text}</p>
    case 'reasoning':
      return <p className="reasoning">{part.text}</p>
    case 'file':
      return part.mediaType.startsWith('image/') ? <img src={part.url} alt="" /> : null
    case 'tool-local_time':
      return null
    case 'tool-pick_seat':
      return <SeatView part={part} onPick={props.onPick} />
    default:
      return 'toolCallId' in part ? <CallView part={part} onApprove={props.onApprove} /> : null
  }
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
      <h2>Seats of the {part.input?.train}</h2>
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
  'input-available': 'at work …',
  'approval-requested': 'may I?',
  'approval-responded': 'you have answered',
  'output-denied': 'you have said no',
}

function CallView({ part, onApprove }: { part: CallPart } & Pick<MessageProps, 'onApprove'>) {
  const name = part.type === 'dynamic-tool' ? (part.title ?? part.toolName) : part.type.replace('tool-', '')
  const isOpen = part.state === 'approval-requested'
  return (
    <section className="call" data-asks={isOpen || undefined} data-state={part.state}>
      <h2>
        {titles[name] ?? name} <small>{states[part.state]}</small>
      </h2>
      <Values of={part.input} />
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

/** A value as people read it: a list has a line for each item. */
function Values({ of }: { of: unknown }) {
  const lines = Array.isArray(of) ? of : [of]
  const line = (value: unknown): string =>
    typeof value === 'object' && value !== null
      ? Object.entries(value)
          .map(([key, each]) => `${key} ${Array.isArray(each) ? each.join(', ') : String(each)}`)
          .join('  ·  ')
      : `${(value as string | number | null) ?? ''}`
  return (
    <>
      {lines.map((value, at) => (
        <p key={at} className="values">
          {line(value)}
        </p>
      ))}
    </>
  )
}
