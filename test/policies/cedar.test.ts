import fc from 'fast-check'
import { jest } from '@jest/globals'
import type { Principal } from '../../src/index.js'
import { cedar, type CedarEngine, type CedarOptions } from '../../src/cedar/index.js'
import { pay } from './paying.js'
import { sampled } from '../support/extent.js'

jest.setTimeout(60_000)

const policies = {
  small: 'permit (principal, action == Action::"pay", resource) when { context.arguments.amount < 100 };',
  finance:
    'permit (principal in Role::"finance", action == Action::"pay", resource) when { context.approved && context.arguments.amount < 1000 };',
  embargo:
    'forbid (principal, action, resource) when { context.arguments has to && context.arguments.to == "acme" };',
}
const finance: Principal = { id: 'ann', roles: ['finance'] }

describe('cedar', () => {
  it.each([
    [{ amount: 50 }, finance, 'runs', 'small'],
    [{ amount: 50, to: null }, finance, 'runs', 'small'],
    [{ amount: 500 }, finance, 'asks', 'finance'],
    [{ amount: 500 }, { id: 'bob' }, 'denied', ''],
    [{ amount: 5000 }, finance, 'denied', ''],
    [{ amount: 50, to: 'acme' }, finance, 'denied', 'embargo'],
    [{ amount: 50 }, { id: '' }, 'denied', 'no_principal'],
    // Cedar reports an error for each of these.
    [{ amount: '50' }, finance, 'denied', 'policy_error'],
    [{}, finance, 'denied', 'policy_error'],
    [{ amount: 50.5 }, finance, 'denied', 'policy_error'],
    [{ amount: { __entity: { type: 'User', id: 'ann' } } }, finance, 'denied', 'policy_error'],
  ] as const)('decides a payment of %j by %j: %s', async (input, by, outcome, rule) => {
    expect(await pay(await cedar({ policies }), input, by as Principal)).toMatchObject({ outcome, rule })
  })

  it('reads entities of the app, which replace the one of the requester', async () => {
    const text = 'permit (principal, action, resource) when { principal.level > 3 };'
    const entities: CedarOptions['entities'] = ({ requester, context }) => [
      { uid: { type: 'User', id: requester?.id ?? '' }, attrs: { level: context ? 5 : 1 }, parents: [] },
    ]
    expect(await pay(await cedar({ policies: text, entities }), {})).toMatchObject({ outcome: 'runs' })
    expect(await pay(await cedar({ policies: text }), {})).toMatchObject({ outcome: 'denied' })
  })

  it('refuses policies that Cedar cannot parse', async () => {
    await expect(cedar({ policies: 'permit all' })).rejects.toMatchObject({
      code: 'invalid_option',
      subject: 'policies',
    })
  })

  it('denies if its engine fails in any way', async () => {
    const response = fc.record(
      {
        type: fc.constantFrom('success', 'failure', 'x'),
        response: fc.option(
          fc.record(
            {
              decision: fc.constantFrom('deny', 'Allow', '', null),
              diagnostics: fc.anything(),
            },
            { requiredKeys: [] },
          ),
        ),
      },
      { requiredKeys: [] },
    )
    const erring = fc.constant({
      type: 'success',
      response: { decision: 'allow', diagnostics: { reason: [], errors: [{ policyId: 'a' }] } },
    })
    await fc.assert(
      fc.asyncProperty(fc.oneof(response, erring, fc.anything(), fc.constant('throws')), async (answer) => {
        const engine = {
          checkParsePolicySet: () => ({ type: 'success' }),
          isAuthorized: () => {
            if (answer === 'throws') throw new Error('no')
            return answer
          },
        } as unknown as CedarEngine
        expect(await pay(await cedar({ policies: '', engine }), {})).toMatchObject({ outcome: 'denied' })
      }),
      { numRuns: sampled(60) },
    )
  })
})
