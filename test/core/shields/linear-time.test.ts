import { piiShield, secretsShield } from '../../../src/core/shields/index.js'
import { sampled } from '../../support/extent.js'
import { verdictOf } from './support.js'

const length = sampled(300_000)

/** Prefixes that never complete a match. A quadratic pattern would take minutes. */
describe('a long text of near matches is checked in linear time', () => {
  it.each([
    'eyJaaaaa.',
    'sk-',
    '-----BEGIN ',
    '-----BEGIN PRIVATE KEY-----',
    '://a:',
    'password=',
    '?sig=%2',
    '\\n',
    '1',
    'bearer ',
    'sk-\n',
    'AKIA\u200b',
    'ＡKIA\\n',
    `ghp_${'a'.repeat(36)}\n`,
    ' \n',
  ])('secrets: %j', async (unit) => {
    const text = unit.repeat(length / unit.length)
    expect((await verdictOf(secretsShield(), text)).action).toMatch(/allow|redact|block/)
  })

  it.each(['a.', 'a@a.', '+1(', 'DE12 ', '2-'])('personal data: %j', async (unit) => {
    const text = unit.repeat(length / unit.length)
    expect((await verdictOf(piiShield(), text)).action).toMatch(/allow|redact/)
  })
})
