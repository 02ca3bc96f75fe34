export const handbook = [
  { source: 'leave.md', text: 'Everyone has 30 days of vacation a year. Unused days expire in March.' },
  {
    source: 'laptops.md',
    text: 'A laptop is replaced after four years. Broken ones are repaired by the service desk.',
  },
  { source: 'travel.md', text: 'Trains are booked in second class. A taxi needs a reason on the receipt.' },
]
