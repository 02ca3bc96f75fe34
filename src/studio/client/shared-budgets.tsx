import { formatMoney, formatCount } from '../../core/format/format-words.js'
import type { BudgetView } from '../budget-views.js'

/** What is spent of the budgets that runs share, each with its gauge. */
export function SharedBudgets({ budgets }: { budgets: readonly BudgetView[] }) {
  if (budgets.length === 0) return null
  return (
    <div class="days">
      {budgets.map(({ id, unit, spent, reserved, limit, resetsAt }) => {
        const [format, ending] = unit === 'usd' ? [formatMoney, ''] : [formatCount, ' tokens']
        const whole = resetsAt === null ? '' : `, whole again ${new Date(resetsAt).toLocaleString()}`
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
