/** Returns the number in the middle. */
const median = (numbers) => numbers.sort()[Math.floor(numbers.length / 2)]

console.log(median([9, 10, 101]))
