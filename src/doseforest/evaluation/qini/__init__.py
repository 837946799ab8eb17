"""Qini curves: how much more a model's ranking gains than chance, dose by dose and by budget."""
