"""`notyet status`: whether agents are checked here, by which gates and hosts, and what is wrong.

Gather: `facts` (one host: program, settings, our entries) and `probe` (a made-up stop through the
installed command). Judge: `host_faults` and `notyet_faults` find faults, `answer` says yes, perhaps
or no. `report` adds the `overview` (gates, limits, recent stops); `why` explains one stop.
"""
