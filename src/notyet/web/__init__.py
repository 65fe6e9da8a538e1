"""The page: what `notyet page` shows in a browser.

A screen reads the ledger (`load`) and draws HTML (`draw`); `app` serves all of them alike, as HTML
and as JSON. `access` decides who may see them.
"""
