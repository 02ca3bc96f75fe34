import * as fc from 'fast-check'
import { ArithmeticError, evaluateExpression } from '../../src/cli/arithmetic.js'

describe('evaluate', () => {
  test.each([
    ['1 + 2 * 3', 7],
    ['(1 + 2) * 3', 9],
    ['10 - 4 - 3', 3],
    ['100 / 10 / 2', 5],
    ['7 % 4', 3],
    ['2 ^ 3 ^ 2', 512],
    ['2 ** 10', 1024],
    ['-2 ^ 2', -4],
    ['2 ^ -1', 0.5],
    ['2 * -3', -6],
    ['--1', 1],
    ['.5 + 1.25', 1.75],
    ['1e3 + 1.5E-1', 1000.15],
    ['0.1 + 0.2', 0.3],
    ['max(1, 2, 3) - min(4, 5)', -1],
    ['ROUND(2.4) + sqrt(16) + abs(-1) + floor(1.9) + ceil(1.1) + sum(1, 2)', 13],
    ['\t 3 * (1189.00 + 96.50) - 240.00 \n', 3616.5],
  ])('%s is %d', (expression, value) => {
    expect(evaluateExpression(expression)).toBe(value)
  })

  test.each([
    ['', 'the end of the expression'],
    ['1 +', 'the end of the expression'],
    ['1 2', "'2' at character 3"],
    ['(1', "Expected ')'"],
    ['1)', "')' at character 2"],
    ['process(1)', "'process' at character 1"],
    ['constructor(1)', "'constructor' at character 1"],
    ['1 + $', "'$' at character 5 is not arithmetic"],
    ['sqrt 4', "Expected '('"],
    ['1 / 0', 'Division by zero'],
    ['5 % (1 - 1)', 'Division by zero'],
    ['sqrt(-1)', 'not a finite number'],
    ['9 ^ 9 ^ 9', 'not a finite number'],
    ['1'.repeat(1_001), 'longer than 1000 characters'],
  ])('%j is refused with the position and the expected token', (expression, message) => {
    expect(() => evaluateExpression(expression)).toThrow(ArithmeticError)
    expect(() => evaluateExpression(expression)).toThrow(message)
  })

  test('agrees with JavaScript on every generated expression', () => {
    const { expression } = fc.letrec<{ expression: [string, number] }>((tie) => ({
      expression: fc.oneof(
        { depthSize: 'small', withCrossShrink: true },
        fc.integer({ min: 0, max: 999 }).map((value): [string, number] => [String(value), value]),
        tie('expression').map(([text, value]): [string, number] => [`-(${text})`, -value]),
        fc
          .tuple(tie('expression'), fc.constantFrom('+', '-', '*'), tie('expression'))
          .map(([[a, x], operator, [b, y]]): [string, number] => [
            `(${a} ${operator} ${b})`,
            operator === '+' ? x + y : operator === '-' ? x - y : x * y,
          ]),
      ),
    }))
    fc.assert(
      fc.property(expression, ([text, value]) => {
        fc.pre(text.length <= 1_000)
        expect(evaluateExpression(text)).toBeCloseTo(
          value,
          value === 0 ? 10 : -Math.log10(Math.abs(value) * 1e-11),
        )
      }),
    )
  })

  test('returns a finite number or throws an ArithmeticError for any text', () => {
    const symbols = fc.string({
      unit: fc.constantFrom(...'0123456789.e+-*/%^(), sqrtmax'.split('')),
      maxLength: 60,
    })
    fc.assert(
      fc.property(fc.oneof(fc.string(), symbols), (text) => {
        try {
          expect(Number.isFinite(evaluateExpression(text))).toBe(true)
        } catch (error) {
          expect(error).toBeInstanceOf(ArithmeticError)
        }
      }),
    )
  })

  test('a thousand open parentheses do not overflow the stack', () => {
    expect(() => evaluateExpression('('.repeat(1_000))).toThrow(ArithmeticError)
    expect(evaluateExpression(`${'('.repeat(499)}1${')'.repeat(499)}`)).toBe(1)
  })
})
