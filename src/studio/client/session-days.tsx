import { formatWakeTime } from '../../core/base/clock.js'
import { formatCount, formatMoney } from '../../core/format/format-words.js'
import { addCosts, formatCost } from '../costs.js'
import type { BudgetView, DayView } from '../protocol.js'
import { formatWord } from '../format.js'

const height = 36
/** Colors do not depend on counts, because counts change. All further reasons share the last color. */
const colours = 4

interface SessionDaysProps {
  days: readonly DayView[]
  onReason: (reason: string) => void
}

export function SessionDays({ days, onReason }: SessionDaysProps) {
  const cost = addCosts(days.map((day) => day.cost))
  const totals = new Map<string, number>()
  for (const { failures } of days)
    for (const [reason, count] of Object.entries(failures))
      totals.set(reason, (totals.get(reason) ?? 0) + count)
  const reasons = [...totals].toSorted((a, b) => b[1] - a[1])
  if (days.length === 0 || (cost.usd === 0 && reasons.length === 0)) return null
  const classOf = new Map(
    [...totals.keys()].toSorted().map((reason, index) => [reason, `part-${Math.min(index, colours - 1)}`]),
  )
  return (
    <div class="days">
      {cost.usd > 0 && (
        <figure>
          <figcaption>
            Cost by day <strong>{formatCost(cost)}</strong>
            {!cost.isWhole && 'excluding sessions with unpriced usage'}
          </figcaption>
          <Columns
            label={`Cost by day, from ${days[0]?.day} to ${days.at(-1)?.day}`}
            days={days.map((day) => ({
              day: day.day,
              text: `${day.day}: ${formatCost(day.cost)}, ${formatCount(day.sessions, 'session')}`,
              parts: [{ name: 'part-cost', size: day.cost.usd }],
            }))}
          />
        </figure>
      )}
      {reasons.length > 0 && (
        <figure>
          <figcaption>
            Failed or stopped
            {reasons.slice(0, 6).map(([reason, count]) => (
              <button key={reason} class="reason" onClick={() => onReason(reason)}>
                <i class={classOf.get(reason)} /> {formatWord(reason)} <strong>{count}</strong>
              </button>
            ))}
          </figcaption>
          <Columns
            label={`Failed or stopped sessions by day: ${joinCounts(reasons)}`}
            days={days.map(({ day, failures }) => ({
              day,
              text: `${day}: ${joinCounts(Object.entries(failures)) || 'none failed'}`,
              parts: reasons.flatMap(([reason]) =>
                failures[reason] === undefined
                  ? []
                  : [{ name: classOf.get(reason) ?? '', size: failures[reason] }],
              ),
            }))}
          />
        </figure>
      )}
    </div>
  )
}

const joinCounts = (counts: readonly (readonly [string, number])[]): string =>
  counts.map(([reason, count]) => `${reason} ${count}`).join(', ')

interface Column {
  day: string
  text: string
  parts: { name: string; size: number }[]
}

function Columns({ label, days }: { label: string; days: readonly Column[] }) {
  const sizeOf = ({ parts }: Column): number => parts.reduce((sum, { size }) => sum + size, 0)
  const most = Math.max(...days.map(sizeOf), Number.EPSILON)
  return (
    <svg
      viewBox={`0 0 ${days.length * 10} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      {days.map((column, index) => {
        let top = height
        return (
          <g key={column.day}>
            <title>{column.text}</title>
            <rect x={index * 10} y={0} width={10} height={height} class="part-none" />
            {column.parts.map(({ name, size }) => {
              const tall = size > 0 ? Math.max(1, (size / most) * (height - 2)) : 0
              top -= tall
              return <rect key={name} x={index * 10 + 1} y={top} width={8} height={tall} class={name} />
            })}
          </g>
        )
      })}
    </svg>
  )
}

export function SharedBudgets({ budgets }: { budgets: readonly BudgetView[] }) {
  if (budgets.length === 0) return null
  return (
    <div class="days">
      {budgets.map(({ id, unit, spent, reserved, limit, resetsAt }) => {
        const [format, ending] = unit === 'usd' ? [formatMoney, ''] : [formatCount, ' tokens']
        const whole = resetsAt === null ? '' : `, resets at ${formatWakeTime(resetsAt)}`
        return (
          <figure key={`${id} ${unit}`}>
            <figcaption>
              Budget {id}
              <strong>
                {format(spent)} of {format(limit)}
                {ending}
              </strong>
              {reserved > 0 && `${format(reserved)}${ending} reserved`}
            </figcaption>
            <meter
              aria-label={`Budget ${id}, spent and reserved`}
              title={`${format(spent)} spent, ${format(reserved)}${ending} reserved${whole}`}
              max={limit}
              high={limit * 0.9}
              value={spent + reserved}
            />
          </figure>
        )
      })}
    </div>
  )
}
